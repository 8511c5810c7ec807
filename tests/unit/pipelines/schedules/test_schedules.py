"""Pipeline schedules: their orders, closed forms, and what is refused."""

from __future__ import annotations

import random

import pytest

from hlorewrite.errors import HlorewriteError, PlanError, UsageError
from hlorewrite.pipelines.schedules import (
    ROW,
    SCHEDULES,
    Schedule,
    ScheduleInstruction,
    Task,
    check,
    check_transfers,
    custom_schedule,
    earliest,
    instructions,
    live,
    make_schedule,
    peak_live,
    peers,
    sequence,
    ticks,
)

SIZES = [(1, 1), (1, 5), (2, 2), (2, 7), (3, 3), (4, 8), (4, 16), (5, 20), (8, 16)]


def times(schedule: Schedule, forward: float, input_gradient: float, weight_gradient: float) -> tuple[float, float]:
    """Iteration time and longest span of a mesh, with each mesh's times divided over its chunks."""
    chunks = schedule.stages // schedule.meshes
    seconds = {"F": forward, "B": input_gradient + weight_gradient, "I": input_gradient, "W": weight_gradient}
    start, end = earliest(schedule, [[seconds[task.kind] / chunks for task in order] for order in schedule.orders])
    spans = [max(end[k] for k in row.tolist()) - start[int(row[0])] for row in schedule.numbers]
    return max(end), max(spans)


def known(meshes: int, microbatches: int) -> list[Schedule]:
    """All schedules that take these sizes."""
    made = []
    for name in SCHEDULES:
        if name == "interleaved-1f1b" and microbatches % meshes:
            continue
        if name == "dualpipe-v" and microbatches < 2 * meshes:
            continue
        made.append(make_schedule(name, meshes, microbatches))
    return made


@pytest.mark.parametrize(("meshes", "microbatches"), SIZES)
def test_every_schedule_is_complete_and_free_of_deadlock(meshes: int, microbatches: int) -> None:
    for schedule in known(meshes, microbatches):
        check(schedule)
        check_transfers(instructions(schedule))


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "eager-1f1b"])
@pytest.mark.parametrize(("meshes", "microbatches"), SIZES)
def test_whole_backwards_take_m_plus_n_minus_1_rounds(name: str, meshes: int, microbatches: int) -> None:
    if name == "gpipe":  # fills and drains by itself whatever f and b are
        total, _ = times(make_schedule(name, meshes, microbatches), 1.0, 0.7, 0.9)
        assert total == pytest.approx((microbatches + meshes - 1) * (1.0 + 1.6))
    total, _ = times(make_schedule(name, meshes, microbatches), 1.0, 1.0, 1.0)
    assert total == pytest.approx((microbatches + meshes - 1) * 3.0)


@pytest.mark.parametrize(("meshes", "microbatches"), SIZES)
def test_activations_alive(meshes: int, microbatches: int) -> None:
    stages = range(meshes)
    assert peak_live(make_schedule("gpipe", meshes, microbatches)) == [microbatches] * meshes
    assert peak_live(make_schedule("1f1b", meshes, microbatches)) == [min(microbatches, meshes - i) for i in stages]
    assert peak_live(make_schedule("eager-1f1b", meshes, microbatches)) == [
        min(microbatches, 2 * (meshes - i) - 1) for i in stages]
    assert peak_live(make_schedule("zb-h1", meshes, microbatches)) == [min(microbatches, meshes)] * meshes
    assert peak_live(make_schedule("zb-h2", meshes, microbatches)) == [min(microbatches, 2 * meshes - 1)] * meshes


@pytest.mark.parametrize(("meshes", "microbatches"), [(2, 8), (4, 8), (4, 16), (8, 16)])
def test_bubbles_of_zero_bubble_schedules(meshes: int, microbatches: int) -> None:
    forward = inputs = weights = 1.0
    work = microbatches * (forward + inputs + weights)
    total, _ = times(make_schedule("zb-h1", meshes, microbatches), forward, inputs, weights)
    assert total - work == pytest.approx((meshes - 1) * (forward + inputs - weights))
    _, span = times(make_schedule("zb-h2", meshes, microbatches), forward, inputs, weights)
    assert span - work == pytest.approx((meshes - 1) * (forward + inputs - 2 * weights))


@pytest.mark.parametrize(("meshes", "microbatches", "chunks"),
                         [(2, 4, 2), (4, 8, 2), (4, 8, 4), (4, 16, 3), (8, 16, 2)])
def test_interleaving_divides_the_bubble(meshes: int, microbatches: int, chunks: int) -> None:
    schedule = make_schedule("interleaved-1f1b", meshes, microbatches, chunks)
    total, _ = times(schedule, 1.0, 1.0, 1.0)
    assert total - microbatches * 3.0 == pytest.approx((meshes - 1) * 3.0 / chunks)
    assert peak_live(schedule)[0] == 2 * (meshes - 1) + (chunks - 1) * meshes + 1


def test_one_chunk_runs_as_far_ahead_as_eager_1f1b() -> None:
    # 2(n-i-1) warm-up forwards, and one before the first backward: eager-1F1B's 2(n-i)-1.
    assert make_schedule("interleaved-1f1b", 4, 8, 1).orders == make_schedule("eager-1f1b", 4, 8).orders


@pytest.mark.parametrize(("meshes", "microbatches"), [(2, 8), (4, 8), (4, 16), (8, 16)])
def test_dualpipe_v_keeps_its_bounds(meshes: int, microbatches: int) -> None:
    schedule = make_schedule("dualpipe-v", meshes, microbatches)
    # Per chunk F = B's half = 1/2: the published bubble (n-1)(F&B + B - 3W) counts the pair as one block.
    total, _ = times(schedule, 1.0, 1.0, 1.0)
    assert 0 < total - microbatches * 3.0 <= (meshes - 1) * (1.5 + 1.0 - 1.5)
    assert max(peak_live(schedule)) <= 2 * meshes + 1
    assert schedule.mesh_of[0] == schedule.mesh_of[-1] == 0


def test_eager_1f1b_is_the_papers_table() -> None:
    schedule = make_schedule("eager-1f1b", 3, 6)
    assert schedule.text().splitlines() == [
        "F0 F1 F2 F3 F4 B0 F5 B1 B2 B3 B4 B5", "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5",
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5"]


def test_text_and_table_are_inverse() -> None:
    for schedule in known(4, 8):
        table = ("placement v\n" if schedule.name == "dualpipe-v" else "") + schedule.text()
        again = check(custom_schedule(table))
        assert (again.orders, again.mesh_of) == (schedule.orders, schedule.mesh_of)


def test_ticks_of_1f1b_stay_within_alpas_clock() -> None:
    schedule = make_schedule("1f1b", 4, 8)
    assert max(ticks(schedule)) == 2 * (8 + 4 - 1) - 1


def test_transfers_know_the_fold() -> None:
    schedule = make_schedule("dualpipe-v", 2, 4)
    assert peers(schedule).reshape(3, 4).tolist() == [[1, -1, 0, -1], [-1, 0, -1, 1], [-1] * 4]


def test_sequence_holds_every_task_and_transfer_once() -> None:
    for schedule in known(4, 8):
        numbers, _, destination = sequence(schedule)
        runs = sorted(numbers[destination < 0].tolist())
        assert runs == sorted(k for row in schedule.numbers for k in row.tolist())
        assert len(numbers) - len(runs) == (schedule.stages - 1 - (schedule.name == "dualpipe-v")) * 16


def test_naive_order_of_blocking_transfers_deadlocks() -> None:
    # A send right after its task and a receive right before its task: 1F1B's neighbours then both want to send.
    schedule = make_schedule("1f1b", 2, 3)
    lists: list[list[ScheduleInstruction]] = [[], []]
    for mesh, order in enumerate(schedule.orders):
        for task in order:
            if task.kind == "F" and mesh == 1:
                lists[mesh].append(ScheduleInstruction("receive", task._replace(stage=0), 0))
            if task.kind == "B" and mesh == 0:
                lists[mesh].append(ScheduleInstruction("receive", task._replace(stage=1), 1))
            lists[mesh].append(ScheduleInstruction("run", task, -1))
            if (task.kind, mesh) in (("F", 0), ("B", 1)):
                lists[mesh].append(ScheduleInstruction("send", task, 1 - mesh))
    with pytest.raises(PlanError, match=r"deadlock: mesh 0 waits to send the result of the forward of micro-batch 1 on "
                                        r"stage 0, while mesh 1 waits to send that of the backward of micro-batch 0"):
        check_transfers(lists)


def test_transfers_to_a_mesh_that_has_ended() -> None:
    with pytest.raises(PlanError, match="mesh 1 has ended"):
        check_transfers([[ScheduleInstruction("send", Task("F", 0, 0), 1)], []])


@pytest.mark.parametrize(("table", "message"), [
    ("B0 F0", "the backward of micro-batch 0 on stage 0 runs before its forward; move F0 before B0"),
    ("F0 W0 I0", "the weight gradient of micro-batch 0 on stage 0 runs before its forward|before its input"),
    ("F0 F0 B0", "the forward of micro-batch 0 on stage 0 runs twice"),
    ("F0 B0 I0", "input gradient of micro-batch 0 on stage 0 runs after its backward pass"),
    ("F0 F1 B0", "the backward of micro-batch 1 on stage 0 never runs; add B1 to mesh 0"),
    ("F0 I0", "the weight gradient of micro-batch 0 on stage 0 never runs"),
    ("F0 B0\nF0 B0 F1 B1", "the forward of micro-batch 1 on stage 0 never runs"),
    ("F0 B0 F1 B1\nF1 B1 F0 B0", "the schedule deadlocks: the backward of micro-batch 0 on stage 0 waits for the "
                                 "backward of micro-batch 0 on stage 1"),
    ("F0.1 F0 B0.1 B0", "the schedule deadlocks: the forward of micro-batch 0 on stage 1 comes before the forward of "
                        "micro-batch 0 on stage 0"),
    ("F0 X1", "custom:1: \"X1\" is not a task"),
    ("# only this", "the table has no line of tasks"),
    ("placement w\nF0 B0", "is not a placement"),
    ("placement v\nF0 B0", "placement v has two chunks"),
])
def test_bad_tables(table: str, message: str) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        check(custom_schedule(table))
    assert "\n" not in str(caught.value)


def test_memory_bound_names_stage_and_microbatch() -> None:
    check(make_schedule("1f1b", 4, 8), most_live=4)
    with pytest.raises(PlanError, match="the forward of micro-batch 4 on stage 0 makes 5 micro-batches alive"):
        check(make_schedule("eager-1f1b", 4, 8), most_live=4)


@pytest.mark.parametrize(("call", "kind", "message"), [
    (("1fb1", 4, 8), UsageError, 'did you mean "1f1b"'),
    (("1f1b", 0, 8), UsageError, "a pipeline of 0 stages"),
    (("gpipe", 4, 0), UsageError, "0 micro-batches"),
    (("interleaved-1f1b", 4, 6), PlanError, "6 micro-batches do not fit interleaving over 4 stages.*use 4 or 8"),
    (("interleaved-1f1b", 4, 2), PlanError, "use 4 micro-batches"),
    (("interleaved-1f1b", 4, 8, 0), UsageError, "0 chunks"),
    (("dualpipe-v", 4, 7), PlanError, "needs 8 micro-batches, not 7"),
    (("dualpipe-v", 4, 8, 3), PlanError, "runs 2 chunks on each mesh, not 3"),
    (("1f1b", 4, 8, 2), PlanError, 'use "interleaved-1f1b" for 2'),
    (("1f1b", 10**6, 10**6), PlanError, "forwards; at most"),
])
def test_bad_requests(call: tuple, kind: type[HlorewriteError], message: str) -> None:
    with pytest.raises(kind, match=message):
        make_schedule(*call)


def test_shuffled_orders_are_refused_or_run() -> None:
    # Any permutation either passes the check and runs to its end, or is refused: never neither.
    chance = random.Random(0)
    ran = refused = 0
    for _ in range(300):
        rows = []
        for _ in range(2):
            tasks = [f"{kind}{k}" for k in range(2) for kind in "FB"]
            chance.shuffle(tasks)
            rows.append(" ".join(tasks))
        schedule = custom_schedule("\n".join(rows))
        try:
            check(schedule)
        except PlanError:
            refused += 1
            continue
        _, end = earliest(schedule, [[1.0] * 4] * 2)
        assert all(end[number] > 0 for row in schedule.numbers for number in row.tolist())
        check_transfers(instructions(schedule))
        ran += 1
    assert ran > 5 and refused > 5


def test_live_counts_end_at_zero_and_rows_are_apart() -> None:
    for schedule in known(4, 8):
        assert all(counts[-1] == 0 for counts in live(schedule))
    assert ROW["B"] == ROW["I"] != ROW["W"]
