"""Collectives in asynchronous computations, fusions and calls: the timeline, the audit and the report see each."""

from __future__ import annotations

import pytest
from timeline_schedules import BIG, GROUPS, SIZE, computation, kernel, scheduled

from hlorewrite.audit.step_audit import audit_step
from hlorewrite.cost import topology
from hlorewrite.cost.report.collectives import collectives_of_hlo
from hlorewrite.errors import InputError
from hlorewrite.hlo.collectives import collectives
from hlorewrite.timeline import StepTimeline, simulate
from hlorewrite.timeline.lower import Lowering
from hlorewrite.timeline.program import StreamTransfer
from hlorewrite.timeline.simulate import ScheduledStep

CLUSTER = topology("h200:1x8")
PART, WHOLE = f"f32[{SIZE // 8}]{{0}}", f"f32[{SIZE * 8}]{{0}}"
KINDS = {
    "all-reduce": f"{BIG} all-reduce(%q), channel_id=1, {GROUPS}, use_global_device_ids=true, to_apply=%add",
    "reduce-scatter": f"{PART} reduce-scatter(%q), {GROUPS}, dimensions={{0}}, to_apply=%add",
    "all-gather": f"{WHOLE} all-gather(%q), {GROUPS}, dimensions={{0}}",
    "all-to-all": f"{BIG} all-to-all(%q), {GROUPS}, dimensions={{0}}",
    "collective-permute": f"{BIG} collective-permute(%q), source_target_pairs={{{{0,1}},{{1,0}}}}",
}
CALLS = ("fusion", "call", "nested", "generic", "fusion-start", "call-start")


def wrapped(kind: str, how: str) -> tuple[str, tuple[str, ...]]:
    """(the start, the computations below it) of a collective that XLA wraps in a certain form."""
    line = KINDS[kind]
    shape = line.split(" ", 1)[0]
    inner = computation("inner", f"  ROOT %sent = {line}")
    fusion, call = (f"  ROOT %f = {shape} {text}" for text in (
        "fusion(%q), kind=kCustom, calls=%inner", "call(%q), to_apply=%inner"))
    start = {"fusion-start": "fusion-start(%p), kind=kCustom, calls=%inner",
             "call-start": "call-start(%p), to_apply=%inner"}.get(how, "async-start(%p), calls=%outer")
    below = {"fusion": (inner, computation("outer", fusion)), "call": (inner, computation("outer", call)),
             "nested": (inner, computation("middle", fusion), computation(
                 "outer", f"  ROOT %g = {shape} call(%q), to_apply=%middle")),
             "generic": (computation("outer", f"  ROOT %sent = {line}"),)}.get(how, (inner,))
    return f"  %s = (({BIG}), {shape}, u32[]) {start}", below


def step(entry: str, *below: str, **times: float) -> StepTimeline:
    return simulate(scheduled(entry, *below), CLUSTER, slowdown=0.0, kernel_times=times)


def plain(kind: str) -> StepTimeline:
    """The same collective as a pair of its own."""
    line = KINDS[kind].replace(f"{kind}(%q)", f"{kind}-start(%p)")
    return step(f"  %s = {line}\n{kernel('k')}\n  ROOT %d = {BIG} {kind}-done(%s)", k=1e-6)


@pytest.mark.parametrize("how", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrapped_collective_takes_the_time_of_a_pair_and_ends_where_it_is_awaited(kind: str, how: str) -> None:
    start, below = wrapped(kind, how)
    made = step(f"{start}\n{kernel('k')}\n  ROOT %d = {BIG} async-done(%s)", *below, k=1e-6)
    alike = plain(kind)
    assert made.exposed_s == alike.exposed_s > 0
    (one,), (other,) = made.collectives, alike.collectives
    assert (one.kind, one.payload_bytes, one.groups, one.stream, one.trips) == \
        (other.kind, other.payload_bytes, other.groups, "collectives", 1)
    assert made.kernels == 1
    hidden = step(f"{start}\n{kernel('k')}\n  ROOT %d = {BIG} async-done(%s)", *below, k=1.0)
    assert hidden.exposed_s == 0 and hidden.communication_s == alike.communication_s


@pytest.mark.parametrize("how", ["fusion", "call"])
def test_without_a_start_it_runs_on_the_compute_stream(how: str) -> None:
    _, below = wrapped("all-reduce", how)
    call = "fusion(%p), kind=kCustom, calls=%inner" if how == "fusion" else "call(%p), to_apply=%outer"
    made = step(f"  ROOT %r = {BIG} {call}", *below)
    assert made.exposed_s == made.communication_s == plain("all-reduce").communication_s
    assert made.collectives[0].stream == "compute"


def test_a_start_marked_synchronous_is_exposed_whole() -> None:
    start, below = wrapped("all-reduce", "fusion")
    marked = start + ', backend_config={"collective_backend_config":{"is_sync":true}}'
    made = step(f"{marked}\n{kernel('k')}\n  ROOT %d = {BIG} async-done(%s)", *below, k=1.0)
    assert made.exposed_s == pytest.approx(made.communication_s) and made.collectives[0].stream == "compute"


LOOP = f"({BIG}, s32[])"


def looped(how: str) -> str:
    """A module whose loop runs a wrapped all-reduce in each of its five iterations."""
    start, below = wrapped("all-reduce", how)
    body = (f"%body (b: {LOOP}) -> {LOOP} {{\n  %b = {LOOP} parameter(0)\n  %p = {BIG} get-tuple-element(%b), index=0\n"
            f'{start}, metadata={{op_name="psum" source_file="step.py" source_line=7}}\n'
            f"  %d = {BIG} async-done(%s)\n  %i = s32[] get-tuple-element(%b), index=1\n"
            f"  ROOT %o = {LOOP} tuple(%d, %i)\n}}\n")
    return scheduled(f"  %n = s32[] constant(0)\n  %t = {LOOP} tuple(%p, %n)\n  ROOT %w = {LOOP} while(%t), "
                     'condition=%add, body=%body, backend_config={"known_trip_count":{"n":"5"}}, metadata='
                     '{source_file="step.py" source_line=3}', *below, body)


@pytest.mark.parametrize("how", CALLS)
def test_in_a_loop_it_runs_in_every_iteration_and_all_surfaces_say_so(how: str) -> None:
    text = looped(how)
    scheduled_step = ScheduledStep(text, CLUSTER)
    made = audit_step(scheduled_step, "step")
    (one,) = made.timeline.collectives
    assert (one.trips, one.source) == (5, "step.py:7")
    assert made.loops == ("step.py:3",) and made.reasons == ("the next iteration needs its result",)
    assert made.timeline.exposed_s == one.exposed_s > 0
    ((counted,), (reported,)) = collectives(text), collectives_of_hlo(text)[1]
    assert (counted.kind, counted.trips, counted.bytes) == ("all-reduce", 5, one.payload_bytes)
    assert reported.loop == "step.py:3"


def test_several_of_one_start_are_all_counted_and_run_one_after_the_other() -> None:
    lines = {kind: KINDS[kind] for kind in ("all-reduce", "all-gather", "reduce-scatter")}
    inner = computation("inner", "\n".join(f"  %{kind} = {line}" for kind, line in lines.items())
                        + f"\n  ROOT %r = ({BIG}, {WHOLE}, {PART}) tuple(%all-reduce, %all-gather, %reduce-scatter)")
    shape = f"({BIG}, {WHOLE}, {PART})"
    outer = computation("outer", f"  ROOT %f = {shape} fusion(%q), kind=kCustom, calls=%inner")
    for start, below in (("async-start(%p), calls=%inner", ()), ("async-start(%p), calls=%outer", (outer,))):
        entry = f"  %s = (({BIG}), {shape}) {start}\n  ROOT %d = {BIG} async-done(%s)"
        made = step(entry, inner, *below)
        assert [one.kind for one in made.collectives] == list(lines)
        assert made.exposed_s == pytest.approx(sum(plain(kind).communication_s for kind in lines))
        assert [one.time_s for one in made.collectives] == [plain(kind).communication_s for kind in lines]
        halved = step(entry, inner, *below, s=1.0)
        assert halved.communication_s == pytest.approx(1.0)


def test_a_computation_called_twice_communicates_twice() -> None:
    _, below = wrapped("all-reduce", "fusion")
    twice = computation("twice", f"  %a = {BIG} fusion(%q), kind=kCustom, calls=%inner\n"
                                 f"  ROOT %f = {BIG} fusion(%a), kind=kCustom, calls=%inner")
    made = step(f"  %s = (({BIG}), {BIG}) async-start(%p), calls=%twice\n  ROOT %d = {BIG} async-done(%s)", below[0],
                twice)
    assert made.exposed_s == pytest.approx(2 * plain("all-reduce").communication_s)


def test_what_is_computed_beside_a_collective_takes_its_time_too() -> None:
    square = "f32[4096,4096]{1,0}"
    product = (f"%inner (a: {square}) -> {square} {{\n  %a = {square} parameter(0)\n  %m = {square} dot(%a, %a), "
               "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
               f"  ROOT %r = {square} all-reduce(%m), {GROUPS}, to_apply=%add\n}}\n")
    outer = (f"%outer (a: {square}) -> {square} {{\n  %a = {square} parameter(0)\n"
             f"  ROOT %f = {square} fusion(%a), kind=kCustom, calls=%inner\n}}\n")
    for how in ("fusion(%m), kind=kCustom, calls=%inner", "fusion-start(%m), kind=kCustom, calls=%inner",
                "async-start(%m), calls=%outer"):
        made = step(f"  %m = {square} bitcast(%p)\n  ROOT %x = {square} {how}", product, outer)
        assert made.compute_s > 1e-4 and made.communication_s > 0
        assert made.step_s == pytest.approx(made.compute_s + made.communication_s)


def test_older_texts_that_repeat_what_is_called_on_each_half_count_once() -> None:
    start, below = wrapped("all-reduce", "generic")
    text = scheduled(f"{start}\n  %u = (({BIG}), {BIG}, u32[]) async-update(%s), calls=%outer\n"
                     f"  ROOT %d = {BIG} async-done(%u), calls=%outer", *below)
    assert [one.trips for one in collectives(text)] == [1]
    assert [one.trips for one in simulate(text, CLUSTER).collectives] == [1]


def test_a_collective_that_the_schedule_lacks_is_an_error_and_no_zero() -> None:
    """A form of call that nobody knows yet."""
    _, below = wrapped("all-reduce", "fusion")
    text = scheduled(f"  ROOT %r = {BIG} mystery(%p), calls=%outer", *below)
    assert len(collectives(text)) == 1
    with pytest.raises(InputError, match="lacks the all-reduce sent") as caught:
        simulate(text, CLUSTER, name="step.hlo")
    assert str(caught.value).startswith("step.hlo: ") and "\n" not in str(caught.value)


def test_a_schedule_that_loses_a_collective_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> list[StreamTransfer]:
        return []

    monkeypatch.setattr(Lowering, "_transfer", lost)
    with pytest.raises(InputError, match="lacks the all-reduce r: "):
        simulate(scheduled(f"  ROOT %r = {BIG} all-reduce(%p), {GROUPS}, to_apply=%add"), CLUSTER)


def test_a_condition_that_does_not_run_is_no_loss() -> None:
    text = looped("fusion").replace("condition=%add", "condition=%test")
    test = (f"%test (t: {LOOP}) -> pred[] {{\n  %t = {LOOP} parameter(0)\n  %v = {BIG} get-tuple-element(%t), index=0\n"
            f"  %c = {BIG} all-reduce(%v), {GROUPS}, to_apply=%add\n  ROOT %z = pred[] constant(true)\n}}\n")
    assert len(simulate(text.replace("%body (b", f"{test}\n%body (b"), CLUSTER).collectives) == 1


def test_a_computation_that_calls_itself_ends() -> None:
    """Damaged text: HLO has no recursion."""
    inner = computation("inner", f"  %sent = {BIG} all-reduce(%q), {GROUPS}, to_apply=%add\n"
                                 f"  ROOT %f = {BIG} fusion(%sent), kind=kCustom, calls=%inner")
    made = step(f"  %s = (({BIG}), {BIG}) async-start(%p), calls=%inner\n  ROOT %d = {BIG} async-done(%s)", inner)
    assert made.collectives[0].kind == "all-reduce"
