"""Where to reduce: the minimum cut, its ties and its costs."""

from __future__ import annotations

import pytest
from spmd_helpers import V, loop, module, region

from hlorewrite.analysis.deferral_graph.builder import DeferralGraphBuilder
from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ProgramPoint
from hlorewrite.analysis.deferral_graph.placement import CALL_BYTES, ReductionPlacement, executed_bytes, place
from hlorewrite.analysis.groups import Groups, groups_of
from hlorewrite.analysis.linearity import UniformContext
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir.view import View, owner_op
from hlorewrite.rules.library import shipped_facts

GRADIENT = f"%w = stablehlo.multiply %s, %r : {V}\n%g = AR(%w) : {V}\n"
ACCUMULATE = f"{GRADIENT}%new = stablehlo.add %acc, %g : {V}"


def flow_of(view: View) -> DeferralGraph:
    sources = [result for op in view.ops("stablehlo.all_reduce") for result in op.results]
    groups = groups_of(view.ops("stablehlo.all_reduce")[0], view)
    assert isinstance(groups, Groups)
    return DeferralGraphBuilder(shipped_facts(), UniformContext("sum", Uniformity(view, groups))).build(sources)


def placed(body: str, out: str, kind: str = V) -> tuple[View, DeferralGraph, ReductionPlacement]:
    view = module(region(body, out, kind))
    flow = flow_of(view)
    placement = place(flow)
    assert placement.after <= placement.before
    return view, flow, placement


def names(places: frozenset[ProgramPoint]) -> list[str]:
    """The ops whose results are reduced, and whether it happens on entry to a branch."""
    return sorted(owner_op(p.value).name + (" in a branch" if p.branch is not None else "") for p in places)


def test_an_accumulation_is_reduced_once_behind_its_loop() -> None:
    _, _, placement = placed(loop("l", 5, {"acc": "%zero"}, ACCUMULATE, "%new"), "%l#1")
    assert placement.moves and names(placement.reduced) == ["stablehlo.while"]
    assert (placement.before, placement.after) == (5 * (16 + CALL_BYTES), 16 + CALL_BYTES)


def test_without_a_gain_nothing_moves() -> None:
    _, flow, placement = placed(GRADIENT + f"%a = stablehlo.negate %g : {V}\n%b = stablehlo.negate %a : {V}", "%b")
    assert not placement.moves and placement.before == placement.after
    assert placement.reduced == {ProgramPoint(flow.sources[0])}


def test_a_need_in_the_loop_keeps_every_reduction() -> None:
    body = f"""{GRADIENT}%c = stablehlo.tanh %g : {V}
      %new = stablehlo.add %acc, %c : {V}"""
    _, flow, placement = placed(loop("l", 5, {"acc": "%zero"}, body, "%new"), "%l#1")
    assert not placement.moves and placement.reduced == {ProgramPoint(value) for value in flow.sources}


def test_two_reductions_of_one_sum_become_one() -> None:
    _, _, placement = placed(GRADIENT + f"%h = AR(%s) : {V}\n%t = stablehlo.add %g, %h : {V}", "%t")
    assert names(placement.reduced) == ["stablehlo.add"] and placement.after * 2 == placement.before


def test_a_slice_is_cheaper_and_a_broadcast_dearer() -> None:
    _, _, sliced = placed("%w = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<4xf32>) -> tensor<512x4xf32>\n"
                          "%g = AR(%w) : tensor<512x4xf32>\n"
                          "%v = stablehlo.slice %g [0:1, 0:4] : (tensor<512x4xf32>) -> tensor<1x4xf32>", "%v",
                          "tensor<1x4xf32>")
    assert names(sliced.reduced) == ["stablehlo.slice"] and sliced.after == 16 + CALL_BYTES
    _, _, spread = placed(GRADIENT + f"%v = stablehlo.broadcast_in_dim %g, dims = [1] : ({V}) -> tensor<8x4xf32>", "%v",
                          "tensor<8x4xf32>")
    assert not spread.moves


BRANCH = f"""{GRADIENT}%b = "stablehlo.if"(%go) ({{
    %x = stablehlo.tanh %g : {V} stablehlo.return %x : {V} }}, {{ stablehlo.return %r : {V} }}) : (tensor<i1>) -> {V}
"""


def test_a_value_needed_in_one_branch_is_reduced_there() -> None:
    _, _, placement = placed(BRANCH, "%b")
    assert names(placement.reduced) == ["stablehlo.all_reduce in a branch"]
    assert placement.after == placement.before / 2


def test_a_value_needed_outside_too_is_reduced_once() -> None:
    _, flow, placement = placed(BRANCH + f"%t = stablehlo.tanh %g : {V}\n%o = stablehlo.add %b, %t : {V}", "%o")
    assert not placement.moves and placement.reduced == {ProgramPoint(flow.sources[0])}


def test_what_nobody_reads_needs_no_reduction() -> None:
    _, _, placement = placed(GRADIENT + f"%v = stablehlo.negate %g : {V}", "")
    assert placement.moves and placement.reduced == frozenset() and placement.after == 0


def test_a_loop_that_never_runs_costs_nothing_and_stays() -> None:
    _, _, placement = placed(loop("l", 0, {"acc": "%zero"}, ACCUMULATE, "%new"), "%l#1")
    assert not placement.moves and placement.before == 0


def test_fewer_calls_never_buy_more_bytes() -> None:
    """Six times 16 bytes are less than once 4096, however many calls that saves."""
    wide = "tensor<256x4xf32>"
    body = f"""{GRADIENT}%b = stablehlo.broadcast_in_dim %g, dims = [1] : ({V}) -> {wide}
      %new = stablehlo.add %acc, %b : {wide}"""
    start = f"%big = stablehlo.constant dense<0.0> : {wide}\n"
    _, _, placement = placed(start + loop("l", 6, {"acc": "%big"}, body, "%new", kind=wide), "%l#1", wide)
    assert not placement.moves


def test_equal_bytes_in_fewer_calls_are_cheaper() -> None:
    """What a scan stacks is as large as what it is made of, and one call."""
    stack = "tensor<5x4xf32>"
    body = f"""{GRADIENT}%row = stablehlo.reshape %g : ({V}) -> tensor<1x4xf32>
      %new = stablehlo.dynamic_update_slice %acc, %row, %i_l, %c0 :
        ({stack}, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> {stack}"""
    start = f"%big = stablehlo.constant dense<0.0> : {stack}\n"
    _, _, placement = placed(start + loop("l", 5, {"acc": "%big"}, body, "%new", kind=stack), "%l#1", stack)
    assert names(placement.reduced) == ["stablehlo.while"]


def test_another_cost_can_be_given() -> None:
    body = loop("l", 5, {"acc": "%zero"}, ACCUMULATE, "%new")
    flow = flow_of(view := module(region(body, "%l#1")))
    assert place(flow, lambda size: 3.0).before == 15 and place(flow, lambda size: size / 4).after == 4
    assert executed_bytes(100) == 100 + CALL_BYTES
    assert view.ops("stablehlo.all_reduce")


@pytest.mark.parametrize("trips", [1, 2, "%n"])
def test_an_accumulation_moves_out_of_loops_of_any_length_but_one(trips: int | str) -> None:
    _, _, placement = placed(loop("l", trips, {"acc": "%zero"}, ACCUMULATE, "%new"),
                             "%l#1")
    assert placement.moves is (trips != 1)


def test_an_inner_loop_is_left_and_the_outer_one_when_it_can_be() -> None:
    inner = loop("k", 3, {"a": "%outer"}, f"{GRADIENT}%new = stablehlo.add %a, %g : {V}", "%new")
    _, _, both = placed(loop("l", 5, {"outer": "%zero"}, inner, "%k#1"), "%l#1")
    assert names(both.reduced) == ["stablehlo.while"] and both.before == 15 * both.after
    clipped = f"{inner}%c = stablehlo.tanh %k#1 : {V}"
    _, _, one = placed(loop("l", 5, {"outer": "%zero"}, clipped, "%c"), "%l#1")
    assert one.moves and one.before == 3 * one.after


# ---- never more, on any path

WIDE = "tensor<4x6xf32>"
SPREAD = f"%b = stablehlo.broadcast_in_dim %g, dims = [0] : ({V}) -> {WIDE}\n%new = stablehlo.add %acc, %b : {WIDE}"
BIG_ZERO = f"%big = stablehlo.constant dense<0.0> : {WIDE}\n"


def both(body: str, out: str, kind: str = V) -> tuple[View, ReductionPlacement, ReductionPlacement]:
    """The module, the default placement and the one that is best in expectation."""
    flow = flow_of(view := module(region(body, out, kind)))
    return view, place(flow), place(flow, expected=True)


def reader(name: str) -> str:
    """One branch in three reads the sum."""
    return f"""%{name} = "stablehlo.case"(%n) ({{ %x = stablehlo.tanh %g : {V} stablehlo.return %x : {V} }},
      {{ stablehlo.return %r : {V} }}, {{ stablehlo.return %s : {V} }}) : (tensor<i32>) -> {V}\n"""


def test_a_sum_that_several_switches_read_stays_in_front_of_them() -> None:
    _view, safe, expected = both(GRADIENT + reader("a") + reader("b") + f"%o = stablehlo.add %a, %b : {V}", "%o")
    assert not safe.moves and len(expected.reduced) == 2 and not expected.only_expected
    [path] = safe.only_expected.values()
    assert path.decides is not None and path.decision == "takes branch 0"
    _other, alone, _ = both(GRADIENT + reader("a"), "%a")
    assert alone.moves and not alone.only_expected


def test_a_payload_that_grows_stays_in_a_loop_that_may_run_once() -> None:
    body = loop("l", "%n", {"acc": "%big"}, GRADIENT + SPREAD, "%new", kind=WIDE)
    _view, safe, expected = both(BIG_ZERO + body, "%l#1", WIDE)
    assert not safe.moves and names(expected.reduced) == ["stablehlo.while"]
    [path] = safe.only_expected.values()
    assert path.decision == "runs once"
    eight = body.replace("stablehlo.add %n, %c0", "stablehlo.constant dense<8>")
    _other, known, _ = both(BIG_ZERO + eight, "%l#1", WIDE)
    assert known.moves


def test_a_reduction_never_moves_into_a_loop_that_may_run_often() -> None:
    column = f"%c = stablehlo.slice %g [0:4, 0:1] : ({WIDE}) -> tensor<4x1xf32>\n"
    wide = (f"%w = stablehlo.broadcast_in_dim %s, dims = [0] : ({V}) -> tensor<4x60xf32>\n"
            "%g = AR(%w) : tensor<4x60xf32>\n")
    inside = (column.replace(WIDE, "tensor<4x60xf32>") + f"%d = stablehlo.reshape %c : (tensor<4x1xf32>) -> {V}\n"
              f"%e = stablehlo.tanh %d : {V}\n%new = stablehlo.add %acc, %e : {V}")
    _view, safe, expected = both(wide + loop("l", "%n", {"acc": "%zero"}, inside, "%new"), "%l#1")
    assert not safe.moves and expected.moves
    [path] = safe.only_expected.values()
    assert path.decision == "runs many times"


def test_the_best_that_is_never_more_is_found_between_stay_and_expectation() -> None:
    """After the inner loop the sum is as large as in it; after the outer one it is six times as large."""
    inner = loop("k", "%n", {"a": "%zero"}, f"{GRADIENT}%t = stablehlo.add %a, %g : {V}", "%t")
    outer = loop("l", "%n", {"acc": "%big"}, inner + SPREAD.replace("%g,", "%k#1,"), "%new", kind=WIDE)
    _view, safe, expected = both(BIG_ZERO + outer, "%l#1", WIDE)
    assert names(expected.reduced) == names(safe.reduced) == ["stablehlo.while"]
    assert {str(p.value.type) for p in safe.reduced} == {V} and {str(p.value.type) for p in expected.reduced} == {WIDE}
    assert safe.before > safe.after > expected.after and not safe.only_expected


def test_flows_that_do_not_meet_are_decided_apart() -> None:
    grows = loop("l", "%n", {"acc": "%big"}, GRADIENT + SPREAD, "%new", kind=WIDE)
    moves = loop("m", "%n", {"acc": "%zero"}, ACCUMULATE, "%new")
    _view, safe, _ = both(BIG_ZERO + grows + "\n" + moves + f"\n%o = stablehlo.tanh %m#1 : {V}\n"
                   f"%q = stablehlo.broadcast_in_dim %o, dims = [0] : ({V}) -> {WIDE}\n"
                   f"%z = stablehlo.multiply %l#1, %q : {WIDE}", "%z", WIDE)
    assert len(safe.deferred) > 0 and len(safe.only_expected) == 1


def test_time_takes_the_place_of_bytes_in_the_bound() -> None:
    """Where calls cost more than bytes, one large call is no more than one small one."""
    body = BIG_ZERO + loop("l", "%n", {"acc": "%big"}, GRADIENT + SPREAD, "%new", kind=WIDE)
    flow = flow_of(view := module(region(body, "%l#1", WIDE)))
    assert place(flow, lambda size: 1.0, bound=lambda size: 1.0).moves and view.ops("stablehlo.while")
