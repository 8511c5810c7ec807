"""What each form of HLO is on the streams: pairs, synchronous collectives, calls, branches, sends, unknown times."""

from __future__ import annotations

import pytest
from timeline_schedules import BIG, GROUPS, SIZE, computation, done, kernel, scheduled, start

from hlorewrite.cost import Topology, topology
from hlorewrite.errors import InputError, UsageError
from hlorewrite.timeline import StepTimeline, simulate

CLUSTER = topology("h200:1x8")
LONG = 1.0
"""Measured seconds that hide any collective."""


def step(entry: str, *computations: str, slowdown: float = 0.0, cluster: Topology = CLUSTER,
         **times: float) -> StepTimeline:
    """A step at no slowdown, with measured times."""
    return simulate(scheduled(entry, *computations), cluster, slowdown=slowdown, kernel_times=times)


def test_a_pair_hides_behind_the_compute_between() -> None:
    alone = step("\n".join([start("s"), done("d", "s", root=True)]), s=3.0)
    assert (alone.step_s, alone.exposed_s, alone.bound_s) == (3.0, 3.0, 3.0)
    half = step("\n".join([start("s"), kernel("k"), done("d", "s", root=True)]), s=3.0, k=1.0)
    assert (half.step_s, half.compute_s, half.exposed_s) == (3.0, 1.0, 2.0)
    hidden = step("\n".join([start("s"), kernel("k"), done("d", "s", root=True)]), s=3.0, k=4.0)
    assert (hidden.step_s, hidden.exposed_s, hidden.bound_s) == (4.0, 0.0, 4.0)


def test_compute_beside_a_collective_is_slower_and_the_loss_is_the_collectives() -> None:
    made = step("\n".join([start("s"), kernel("k"), done("d", "s", root=True)]), slowdown=0.5, s=3.0, k=4.0)
    assert made.step_s == pytest.approx(5.0) and made.waited_s == 0
    assert made.collectives[0].exposed_s == pytest.approx(1.0)


def test_collectives_of_one_stream_queue_and_waiting_is_charged_to_the_one_that_runs() -> None:
    made = step("\n".join([start("a"), start("b"), done("d", "b"), done("e", "a", root=True)]), a=1.0, b=2.0)
    assert made.step_s == 3.0
    assert [one.exposed_s for one in made.collectives] == [1.0, 2.0]


@pytest.mark.parametrize("line", [
    f"  ROOT %s = {BIG} all-reduce(%p), {GROUPS}, to_apply=%add",
    start("s", more=', backend_config={"collective_backend_config":{"is_sync":true}}') + "\n" + kernel("k")
    + "\n" + done("d", "s", root=True)], ids=["no pair", "a pair marked synchronous"])
def test_a_synchronous_collective_is_exposed_whole(line: str) -> None:
    made = step(line, s=3.0, k=LONG)
    assert made.exposed_s == 3.0 and made.collectives[0].stream == "compute"


def test_a_fusion_that_is_started_is_one_kernel() -> None:
    """As XLA of jax 0.12 writes the copy of a slice; the ops of its computation are no kernels of their own."""
    fused = computation("fused", f"  %n = {BIG} negate(%q)\n  %e = {BIG} exponential(%n)\n"
                                 f"  ROOT %r = {BIG} add(%e, %q)")
    pair = (f"  %s = (({BIG}), {BIG}, u32[]) fusion-start(%p), kind=kLoop, calls=%fused\n"
            f"  ROOT %d = {BIG} fusion-done(%s)")
    plain = f"  ROOT %d = {BIG} fusion(%p), kind=kLoop, calls=%fused"
    started, alone = step(pair, fused), step(plain, fused)
    assert started.step_s == alone.step_s > 0
    assert any("asynchronous compute" in note for note in started.notes)


def test_the_generic_form_of_a_pair_and_compute_called_asynchronously() -> None:
    wrapped = computation("wrapped", f"  ROOT %r = {BIG} all-reduce(%q), {GROUPS}, to_apply=%add")
    pair = f"  %s = (({BIG}), {BIG}, u32[]) async-start(%p), calls=%wrapped\n{kernel('k')}\n" \
           f"  ROOT %d = {BIG} async-done(%s)"
    made = step(pair, wrapped, s=3.0, k=1.0)
    assert made.exposed_s == 2.0 and made.collectives[0].kind == "all-reduce"
    assert made.collectives[0].payload_bytes == 4 * SIZE
    other = computation("called", kernel("r", "q", root=True))
    compute = f"  %s = (({BIG}), {BIG}, u32[]) call-start(%p), to_apply=%called\n  ROOT %d = {BIG} call-done(%s)"
    made = step(compute, other, r=2.0)
    assert made.step_s == made.compute_s == 2.0 and any("asynchronous compute" in note for note in made.notes)


def test_point_to_point_has_a_stream_of_its_own() -> None:
    recv = (f"  %t = token[] after-all()\n  %r = ({BIG}, u32[], token[]) recv(%t), channel_id=1, "
            'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}\n' + start("s") + "\n"
            + done("d", "s") + f"\n  ROOT %e = ({BIG}, token[]) recv-done(%r)")
    made = step(recv, r=3.0, s=2.0)
    assert made.step_s == 3.0 and {one.stream for one in made.collectives} == {"p2p", "collectives"}
    assert made.collectives[0].groups == ((0, 1), (1, 2)) and made.collectives[0].payload_bytes == 4 * SIZE


@pytest.mark.parametrize("number, seconds", [("1", 2.0), ("0", 3.0)])
def test_an_annotated_collective_has_its_own_stream(number: str, seconds: float) -> None:
    annotated = start("b", more=f', frontend_attributes={{_xla_stream_annotation="{number}"}}')
    made = step("\n".join([start("a"), annotated, done("d", "b"), done("e", "a", root=True)]), a=1.0, b=2.0)
    assert made.step_s == seconds


def test_a_branch_counts_as_its_slowest() -> None:
    branches = [computation(name, kernel(name + "k", "q", root=True)) for name in ("one", "two")]
    made = step(f"  %i = s32[] constant(0)\n  ROOT %c = {BIG} conditional(%i, %p, %p), "
                "branch_computations={%one, %two}", *branches, onek=1.0, twok=4.0)
    assert made.step_s == 4.0


def test_host_copies_run_beside_compute() -> None:
    copy = f"  %s = (f32[{SIZE}]{{0:S(5)}}, {BIG}, u32[]) copy-start(%p)\n{kernel('k')}\n" \
           f"  ROOT %d = f32[{SIZE}]{{0:S(5)}} copy-done(%s)"
    made = step(copy, k=LONG)
    assert made.exposed_s == 0 and made.collectives[0].kind == "host-copy"
    assert made.communication_s == pytest.approx(4 * SIZE / (63e9 * 0.8), rel=1e-3)


def loop(body: str, trips: str, condition: str = "%add") -> tuple[str, str]:
    """(entry, body) of a step that is one loop; the body's lines read ``%q``."""
    shape = f"({BIG}, s32[])"
    return (f"  %n = s32[] constant(0)\n  %t = {shape} tuple(%p, %n)\n"
            f"  ROOT %w = {shape} while(%t), condition={condition}, body=%body{trips}",
            f"%body (b: {shape}) -> {shape} {{\n  %b = {shape} parameter(0)\n"
            f"  %q = {BIG} get-tuple-element(%b), index=0\n{body}\n"
            f"  %i = s32[] get-tuple-element(%b), index=1\n  ROOT %o = {shape} tuple(%q, %i)\n}}\n")


KNOWN = ', backend_config={"known_trip_count":{"n":"1000000"}}'


def test_a_loop_costs_its_turns_whatever_their_number() -> None:
    made = step(*loop("\n".join([start("s", "q"), kernel("k", "q"), done("d", "s")]), KNOWN), s=3.0, k=1.0)
    assert made.step_s == pytest.approx(3e6) and made.exposed_s == pytest.approx(2e6)
    assert made.collectives[0].trips == 1_000_000 and made.kernels == 1_000_000


def test_an_unknown_trip_count_is_named_and_counts_nothing() -> None:
    entry, body = loop("\n".join([start("s", "q"), done("d", "s"), kernel("k", "q")]), "")
    made = step(entry, body, s=3.0, k=1.0)
    assert (made.step_s, made.complete, made.collectives[0].trips) == (0, False, None)
    assert (made.unknown[0].what, made.unknown[0].name, made.unknown[0].each_s) == ("trip count", "w", 4.0)
    text = scheduled(entry, body)
    known = simulate(text, CLUSTER, slowdown=0, kernel_times={"s": 3.0, "k": 1.0}, trips={"w": 5})
    assert known.step_s >= 20 and known.complete


def test_a_custom_call_without_known_cost_is_named() -> None:
    made = step(f'  ROOT %f = {BIG} custom-call(%p), custom_call_target="__cudnn$fmhaSoftmax", '
                'metadata={source_file="a.py" source_line=3}')
    assert (made.step_s, made.complete) == (0, False)
    one = made.unknown[0]
    assert (one.detail, one.source, one.runs) == ("__cudnn$fmhaSoftmax", "a.py:3", 1)
    assert step(f'  ROOT %f = {BIG} custom-call(%p), custom_call_target="x"', f=2.0).step_s == 2.0


def test_measured_names_that_are_nowhere_are_said() -> None:
    made = step(kernel("k.1", root=True), k_1=2.0, nowhere=1.0)
    assert made.step_s == 2.0 and any("nowhere" in note for note in made.notes)


@pytest.mark.parametrize(("change", "says"), [
    (("is_scheduled=true, ", ""), "not scheduled"),
    (("{0} parameter", "{0:T(8,128)} parameter"), "XLA:TPU"),
    (("parameter(0)\n", 'parameter(0), backend_config={"outer_dimension_partitions":[]}\n'), "XLA:CPU")])
def test_other_hlo_is_refused(change: tuple[str, str], says: str) -> None:
    text = scheduled(kernel("k", root=True))
    assert change[0] in text
    with pytest.raises(InputError, match=says):
        simulate(text.replace(*change), CLUSTER)


def test_a_cluster_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="larger"):
        simulate(scheduled(kernel("k", root=True), partitions=16), CLUSTER)
