"""Programs under schedules as flat lists: data, carries, hoisting, lives, refusals."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from hlorewrite.analysis.mesh import Mesh
from hlorewrite.errors import PlanError
from hlorewrite.pipelines.actions.fit import schedule_for, steps_by_task
from hlorewrite.pipelines.actions.order import OUTSIDE, Copy, ProgramOrder, liveness, order_program
from hlorewrite.pipelines.mpmd.program import Carry, FragmentCall, Program, Step, Transfer
from hlorewrite.pipelines.mpmd.types import MeshTensor
from hlorewrite.pipelines.schedules import SCHEDULES, Schedule, Task, custom_schedule, make_schedule

FIRST, SECOND = (MeshTensor(mesh, "tensor<8xf32>", (8,), "f32", 32, ((),)) for mesh in ("m0", "m1"))
W0, W1, ZERO, A0, A1, L1, X, H, HT, G, GT, N0, N1, R0, R1, U0, U1 = range(17)
"""Values: weights, a zero, accumulators inside the loop, the second one's after its forward, activations, gradients."""


def call(task: str, stage: int, operands: tuple[int, ...], results: tuple[int, ...]) -> FragmentCall:
    """A call of the fragment ``task_stage``."""
    return FragmentCall(f"{task}_{stage}", task, stage, f"m{stage}", operands, results)


BODY: tuple[Step, ...] = (
    call("F", 0, (W0,), (X, H)), Transfer(H, HT), call("F", 1, (W1, HT, A1), (L1,)),
    call("B", 1, (W1, HT, L1), (N1, G)), Transfer(G, GT), call("B", 0, (X, GT, A0), (N0,)))


def program(**changes: object) -> Program:
    """Two stages, four micro-batches; the second one's sum is added to in its forward and in its backward."""
    types = tuple(SECOND if value in (W1, A1, L1, HT, G, N1, R1, U1) else FIRST for value in range(24))
    mesh = Mesh((("data", 1),), (0,))
    made = Program("p", "1f1b", {"m0": mesh, "m1": dataclasses.replace(mesh, device_ids=(1,))}, types, (W0, W1),
                   frozenset({0}), (call("before", 0, (), (ZERO,)), call("before", 1, (), (17,))), 4,
                   (Carry(ZERO, A0, N0, R0, True), Carry(17, A1, N1, R1, True)), (), BODY,
                   (call("update", 0, (W0, R0), (U0,)), call("update", 1, (W1, R1), (U1,))), (U0, U1))
    return dataclasses.replace(made, **changes)  # pyright: ignore


def names(order: ProgramOrder) -> list[str]:
    """What runs, in short."""
    return [(f"{action.step.callee}" if isinstance(action.step, FragmentCall) else type(action.step).__name__)
            + (f"/{action.microbatch}" if action.microbatch != OUTSIDE else "") for action in order.actions]


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "eager-1f1b"])
def test_everything_runs_once_and_after_what_it_reads(name: str):
    made = program()
    schedule = schedule_for(made, name)
    order = order_program(made, schedule)
    listed = names(order)
    assert listed.count("Transfer/0") == 2 and len(set(listed)) == len(listed) - 4
    assert len(listed) == 2 + 4 * len(BODY) + 2
    defined = {*order.arguments, *order.indices}
    for action in order.actions:
        assert set(action.reads) <= defined
        assert not set(action.writes) & defined
        defined.update(action.writes)
    assert set(order.results) <= defined
    assert schedule is not None
    for mesh, tasks in enumerate(schedule.orders):
        mine = [action for action in order.actions if isinstance(action.step, FragmentCall) and
                action.step.mesh == f"m{mesh}" and action.microbatch != OUTSIDE]
        assert [(each.step.task, each.microbatch) for each in mine] == [  # pyright: ignore
            (task.kind, task.microbatch) for task in tasks]


def test_a_sum_goes_from_call_to_call_whichever_micro_batch():
    order = order_program(program(), make_schedule("gpipe", 2, 4))
    at = dict(zip(names(order), order.actions, strict=True))
    chain = ["before_1", "F_1/0", "F_1/1", "F_1/2", "F_1/3", "B_1/3", "B_1/2", "B_1/1", "B_1/0", "update_1"]
    for before, after in itertools.pairwise(chain):
        assert at[before].writes[0] == at[after].reads[-1]


def test_what_is_no_sum_keeps_the_order_of_micro_batches():
    carries = tuple(dataclasses.replace(carry, is_sum=False) for carry in program().carries)
    order_program(program(carries=carries[:1] + program().carries[1:]), make_schedule("1f1b", 2, 4))
    with pytest.raises(PlanError, match=r"backward of micro-batch 3 on stage 0 before that of micro-batch 2"):
        order_program(program(carries=carries[:1] + program().carries[1:]), make_schedule("gpipe", 2, 4))
    with pytest.raises(PlanError, match="not a plain sum"):  # the next forward needs this micro-batch's backward
        order_program(program(carries=program().carries[:1] + carries[1:]), make_schedule("gpipe", 2, 4))


def test_what_a_transfer_sends_unchanged_is_sent_once():
    body = (Transfer(W0, 18), *BODY[:2], call("F", 1, (W1, HT, A1, 18), (L1,)), *BODY[3:])
    types = list(program().types)
    types[18] = SECOND
    order = order_program(program(body=body, types=tuple(types)), make_schedule("1f1b", 2, 4))
    sent = [action for action in order.actions if isinstance(action.step, Transfer) and action.step.operand == W0]
    assert [(action.microbatch, action.reads) for action in sent] == [(OUTSIDE, (order.arguments[0],))]
    readers = [action for action in order.actions if sent[0].writes[0] in action.reads]
    assert len(readers) == 4


def test_a_sum_that_starts_from_a_kept_argument_starts_from_a_copy():
    def copies(**changes: object) -> int:
        order = order_program(program(**changes), make_schedule("1f1b", 2, 4))
        return sum(isinstance(action.step, Copy) for action in order.actions)

    first = (Carry(W1, A1, N1, R1, True),)
    assert copies() == 0
    assert copies(carries=program().carries[:1] + first) == 1  # the weight of stage 1 is not donated
    assert copies(carries=(program().carries[0], Carry(ZERO, A1, N1, R1, True))) == 1  # the second takes the zero
    assert copies(results=(U0, U1, ZERO)) == 1


def test_lives():
    made = program()
    order = order_program(made, make_schedule("1f1b", 2, 4))
    lives = liveness(made, order)
    expected = {"before_0": (), "before_1": (), "F_0": (), "F_1": (2,), "B_1": (1, 2), "B_0": (0, 1, 2),
                "update_0": (0, 1), "update_1": (1,)}  # the weight of stage 1 belongs to the caller
    assert lives.donated == {name: frozenset(places) for name, places in expected.items()}
    assert lives.given == frozenset()
    died: set[int] = set()
    for action, dead in zip(order.actions, lives.dead, strict=True):
        assert not died & set(action.reads)
        died.update(dead)
    assert not died & set(order.results)


def test_an_operand_given_twice_is_not_donated():
    body = (*BODY[:5], call("B", 0, (GT, GT, A0), (N0,)))
    made = program(body=body)
    lives = liveness(made, order_program(made, make_schedule("1f1b", 2, 4)))
    assert lives.donated["B_0"] == frozenset({2})


def test_donated_arguments_that_no_fragment_takes_are_deleted():
    made = program(donated=frozenset({0, 1}), after=program().after[:1], results=(U0, R1))
    lives = liveness(made, order_program(made, make_schedule("1f1b", 2, 4)))
    assert lives.given == {1}  # its last reader is a backward, and the others before it need it too


def test_a_forward_that_reads_a_later_stage():
    body = (BODY[0], Transfer(18, 19), call("F", 0, (19,), (20,)), *BODY[1:2],
            call("F", 1, (W1, HT, A1), (L1, 18)), *BODY[3:])
    types = list(program().types)
    types[18] = SECOND
    with pytest.raises(PlanError, match="would read what the forward of micro-batch 0 on stage 1 makes later"):
        order_program(program(body=body, types=tuple(types)), make_schedule("1f1b", 2, 4))


def test_halves():
    split = (*BODY[:3], call("I", 1, (W1, HT), (G,)), call("W", 1, (HT, L1), (N1,)), BODY[4], BODY[5])
    made = program(body=split)
    whole, halved = make_schedule("1f1b", 2, 4), make_schedule("zb-h1", 2, 4)
    assert steps_by_task(made, whole)["B", 1] == [3, 4]
    assert steps_by_task(made, halved)["I", 1] == [3] and steps_by_task(made, halved)["W", 1] == [4]
    # Stage 0 has no halves, as the gradient of its input is not needed: it runs whole where the first half would.
    assert steps_by_task(made, halved)["I", 0] == [6] and steps_by_task(made, halved)["W", 0] == []
    for schedule in (whole, halved):
        assert len(order_program(made, schedule).actions) == 2 + 4 * len(split) + 2


@pytest.mark.parametrize(("schedule", "sentence"), [
    ("zb-h1", "splits the backward pass in two"), (make_schedule("1f1b", 2, 3), "is for 3 micro-batches"),
    (make_schedule("1f1b", 4, 4), "is for 4 stages"),
    (custom_schedule("F0 F0.1 B0.1 B0 F1 F1.1 B1.1 B1 F2 F2.1 B2.1 B2 F3 F3.1 B3.1 B3"), "on the same mesh as stage 0"),
])
def test_schedules_that_do_not_fit(schedule: Schedule | str, sentence: str):
    with pytest.raises(PlanError, match=sentence):
        schedule_for(program(), schedule)


def test_meshes_that_share_stages():
    one = program(body=tuple(dataclasses.replace(step, mesh="m0") if isinstance(step, FragmentCall) else step
                             for step in BODY), before=(), after=())
    with pytest.raises(PlanError, match="is for 2 meshes, but the program's stages are on 1"):
        schedule_for(one, make_schedule("1f1b", 2, 4))


def test_a_program_without_a_loop_needs_no_schedule():
    made = program(iterations=0, carries=(), body=(), before=(), after=(call("update", 0, (W0, W0), (U0,)),),
                   results=(U0, W1))
    assert schedule_for(made, "gpipe") is None
    order = order_program(made, None)
    assert names(order) == ["update_0"] and order.results[1] == order.arguments[1]


def test_names_of_schedules_are_known():
    assert {"gpipe", "1f1b"} <= set(SCHEDULES)
    assert Task("F", 0, 0).label == "F0"
