"""What stands next to a deferred reduction: the ``u`` of ``v = AR(w) + u``, where it is carried, its values."""

from __future__ import annotations

import pytest
from shift_helpers import shift
from spmd_helpers import V, loop, marked, module, region

from hlorewrite.analysis.deferral_graph.builder import DeferralGraphBuilder
from hlorewrite.analysis.deferral_graph.placement import place
from hlorewrite.analysis.groups import Groups, groups_of
from hlorewrite.analysis.linearity import UniformContext
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir.regions import Loop
from hlorewrite.ir.view import View, defining_op, owner_op
from hlorewrite.passes.comm_shift import CommShift
from hlorewrite.passes.comm_shift.deferral import IDENTITY, ReplicatedAddends
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.rules.library import shipped_facts

GRADIENT = f"%w = stablehlo.multiply %s, %r : {V}\n%g = AR(%w) : {V}\n"
ADD = f"{GRADIENT}%new = stablehlo.add %acc, %g : {V}"
HALF = f"%half = stablehlo.constant dense<0.5> : {V}\n"


def parts_of(text: str, kind: str = "sum") -> tuple[View, ReplicatedAddends]:
    view = module(text)
    sources = [result for op in view.ops("stablehlo.all_reduce") for result in op.results]
    groups = groups_of(view.ops("stablehlo.all_reduce")[0], view)
    assert isinstance(groups, Groups)
    flow = DeferralGraphBuilder(shipped_facts(), UniformContext(kind, Uniformity(view, groups))).build(sources)
    return view, ReplicatedAddends(flow, place(flow), kind)


def accumulate(body: str = ADD, start: str = "%zero", before: str = "", trips: int = 4) -> str:
    return region(before + loop("l", trips, {"acc": start}, body, "%new"), "%l#1")


# ---- the forms u can have


def test_an_accumulator_that_starts_at_zero_has_nothing_beside_it() -> None:
    view, parts = parts_of(accumulate())
    assert parts.of(view.ops("stablehlo.while")[0].results[1]) == IDENTITY and not parts.slots
    assert shift(accumulate()).carried() == [2]


def test_an_accumulator_that_starts_at_a_value_keeps_it_beside() -> None:
    view, parts = parts_of(accumulate(start="%r"))
    while_op = view.ops("stablehlo.while")[0]
    addend = parts.of(while_op.results[1])
    assert (addend.form, addend.value) == ("value", while_op.operands[1])
    assert parts.of(Loop(while_op).body.arguments[1]) == addend and not parts.slots
    shifted = shift(accumulate(start="%r"))
    assert shifted.carried() == [2] and shifted.reductions() == [0]


def test_a_difference_keeps_what_it_is_taken_from_and_negates_otherwise() -> None:
    kept = accumulate(f"{GRADIENT}%new = stablehlo.subtract %acc, %g : {V}", "%r")
    view, parts = parts_of(kept)
    assert parts.of(view.ops("stablehlo.while")[0].results[1]).form == "value"
    turned = accumulate(f"{GRADIENT}%new = stablehlo.subtract %g, %acc : {V}", "%r")
    view, parts = parts_of(turned)
    assert [position for _, position in parts.slots] == [1]
    assert shift(kept).carried() == [2] and shift(turned).carried() == [3]


def test_momentum_from_a_saved_state_is_carried_beside() -> None:
    body = f"""{HALF}{GRADIENT}%a = stablehlo.multiply %acc, %half : {V}
      %new = stablehlo.add %a, %g : {V}"""
    view, parts = parts_of(accumulate(body, "%r"))
    while_op = view.ops("stablehlo.while")[0]
    assert list(parts.slots) and parts.of(while_op.results[1]).form == "beside"
    assert shift(accumulate(body, "%r")).carried() == [3]
    assert shift(accumulate(body, "%zero")).carried() == [2]  # from zero there is nothing to carry


def test_another_reduced_value_can_stand_beside() -> None:
    """The sum before the loop is needed by itself, so it is reduced there, and the loop starts from it."""
    text = region(f"""%b = AR(%s) : {V}
      %t = stablehlo.tanh %b : {V}
      {loop("l", 4, {"acc": "%b"}, ADD, "%new")}%o = stablehlo.multiply %l#1, %t : {V}""", "%o")
    shifted = shift(text)
    assert shifted.reductions() == [0, 0] and shifted.carried() == [2]


def test_a_value_reduced_in_the_loop_can_start_the_next_one() -> None:
    inner = loop("k", 3, {"acc": "%outer"}, ADD, "%new")
    text = region(loop("l", 4, {"outer": "%r"}, f"{inner}%t = stablehlo.tanh %k#1 : {V}", "%t"), "%l#1")
    shifted = shift(text)
    assert shifted.reductions() == [1] and shifted.carried() == [2, 2]


@pytest.mark.parametrize("start", ["%zero", "%r", "%s"])
def test_maxima_start_anywhere(start: str) -> None:
    body = f"%g = AR.maximum(%s) : {V}\n%new = stablehlo.maximum %acc, %g : {V}"
    shifted = shift(accumulate(body, start))
    assert shifted.reductions() == [0] and shifted.carried() == [2]


# ---- loops and branches within one another


@pytest.mark.parametrize(("start", "carried"), [("%zero", [2, 2]), ("%r", [2, 2])])
def test_nested_loops_follow_by_themselves(start: str, carried: list[int]) -> None:
    inner = loop("k", 3, {"acc": "%outer"}, ADD, "%new")
    shifted = shift(region(loop("l", 4, {"outer": start}, inner, "%k#1"), "%l#1"))
    assert shifted.reductions() == [0] and shifted.carried() == carried
    assert shifted.counters["executed bytes saved"] == 11 * 16


def test_nested_loops_carry_what_changes() -> None:
    inner = loop("k", 3, {"acc": "%outer"}, f"{HALF}{GRADIENT}%a = stablehlo.multiply %acc, %half : {V}\n"
                 f"%new = stablehlo.add %a, %g : {V}", "%new")
    shifted = shift(region(loop("l", 4, {"outer": "%r"}, inner, "%k#1"), "%l#1"))
    assert shifted.reductions() == [0] and shifted.carried() == [3, 3]


def branch(left: str, right: str, predicate: str = "%go", name: str = "b", kind: str = "if") -> str:
    """``%b`` is ``%x`` or ``%y``, which the branches define."""
    if kind == "case":
        return (f'%index = stablehlo.minimum %n, %c1 : tensor<i32>\n%{name} = "stablehlo.case"(%index) ({{ {left} '
                f"stablehlo.return %x : {V} }}, {{ {right} stablehlo.return %y : {V} }}) : (tensor<i32>) -> {V}\n")
    return (f'%{name} = "stablehlo.if"({predicate}) ({{ {left} stablehlo.return %x : {V} }}, {{ {right} '
            f"stablehlo.return %y : {V} }}) : (tensor<i1>) -> {V}\n")


@pytest.mark.parametrize("kind", ["if", "case"])
@pytest.mark.parametrize(("left", "right"), [
    (f"%x = stablehlo.add %acc, %g : {V}", f"%y = stablehlo.subtract %acc, %g : {V}"),
    (f"%x = stablehlo.add %acc, %g : {V}", f"%y = stablehlo.negate %acc : {V}"),
    (f"%x = stablehlo.add %acc, %g : {V}", f"%y = stablehlo.multiply %acc, %r : {V}"),
    (f"%x = stablehlo.add %acc, %g : {V}", f"%y = stablehlo.add %acc, %r : {V}"),
    (f"%x = stablehlo.add %acc, %r : {V}", f"%y = stablehlo.add %g, %r : {V}"),
])
@pytest.mark.parametrize("start", ["%zero", "%r"])
def test_branches_in_a_loop(left: str, right: str, start: str, kind: str) -> None:
    body = GRADIENT + branch(left, right, kind=kind)
    shifted = shift(region(loop("l", 4, {"acc": start}, body, "%b"), "%l#1"))
    assert shifted.reductions() == [0]


def test_branches_that_keep_the_same_beside_carry_nothing_and_others_do() -> None:
    def results(left: str, right: str, start: str) -> int:
        body = GRADIENT + branch(left, right)
        view, _ = parts_of(region(loop("l", 4, {"acc": start}, body, "%b"), "%l#1"))
        assert len(view.ops("stablehlo.if")[0].results) == 1
        after = shift(region(loop("l", 4, {"acc": start}, body, "%b"), "%l#1")).after
        return len(View(after).ops("stablehlo.if")[0].results)
    plus, keep = f"%x = stablehlo.add %acc, %g : {V}", f"%y = stablehlo.subtract %acc, %g : {V}"
    other = f"%y = stablehlo.add %acc, %r : {V}"
    assert results(plus, keep, "%r") == 1
    assert results(plus, other, "%zero") == 2


def test_a_reduction_in_one_branch_leaves_with_the_loop_only_in_expectation() -> None:
    """When the branch is never taken, nothing is sent; after the loop it would be."""
    body = branch(f"{GRADIENT}%x = stablehlo.add %acc, %g : {V}", f"%y = stablehlo.negate %acc : {V}")
    text = region(loop("l", 4, {"acc": "%zero"}, body, "%b"), "%l#1")
    assert shift(text, CommShift(expected=True)).reductions() == [0]
    left = shift(text)
    assert not left.changed and left.remarks[-1][0] == "unprofitable"
    assert left.remarks[-1][1].startswith("moving it would send less in expectation, but more on a path on which")
    assert left.remarks[-1][1].endswith("takes branch 1")


def test_a_reduction_moves_into_the_branch_that_needs_it() -> None:
    body = GRADIENT + branch(f"%x = stablehlo.tanh %g : {V}", f"%y = stablehlo.negate %acc : {V}")
    shifted = shift(region(loop("l", 4, {"acc": "%zero"}, body, "%b"), "%l#1"))
    assert shifted.changed and shifted.reductions() == [1]
    op = View(shifted.after).ops("stablehlo.all_reduce")[0]
    assert op.parent is not None and op.parent.operation.name == "stablehlo.if"


def test_a_branch_that_differs_between_devices_keeps_its_reductions_out() -> None:
    body = GRADIENT + branch(f"%x = stablehlo.tanh %g : {V}", f"%y = stablehlo.negate %acc : {V}", "%mine")
    assert not shift(region(loop("l", 4, {"acc": "%zero"}, body, "%b"), "%l#1")).changed


# ---- ops on the way


@pytest.mark.parametrize("lines", [
    f"%o:2 = stablehlo.optimization_barrier %r, %a : {V}, {V}\n%new = stablehlo.add %o#1, %g : {V}",
    f"%k = stablehlo.add %a, %r : {V}\n%new = stablehlo.add %k, %g : {V}",
    f"%k = stablehlo.add %g, %r : {V}\n%new = stablehlo.add %k, %a : {V}",
    f"%k = stablehlo.select %go, %a, %r : tensor<i1>, {V}\n%new = stablehlo.add %k, %g : {V}",
    f"%k = stablehlo.reverse %a, dims = [0] : {V}\n%new = stablehlo.add %k, %g : {V}",
    f"%h = stablehlo.slice %g [0:2] : ({V}) -> tensor<2xf32>\n%new = stablehlo.dynamic_update_slice %a, %h, %c1 : "
    f"({V}, tensor<2xf32>, tensor<i32>) -> {V}",
    f"%h = stablehlo.slice %r [0:2] : ({V}) -> tensor<2xf32>\n%k = stablehlo.dynamic_update_slice %g, %h, %c1 : "
    f"({V}, tensor<2xf32>, tensor<i32>) -> {V}\n%new = stablehlo.add %a, %k : {V}",
    f"%h = stablehlo.concatenate %g, %r, dim = 0 : ({V}, {V}) -> tensor<8xf32>\n"
    f"%k = stablehlo.slice %h [2:6] : (tensor<8xf32>) -> {V}\n%new = stablehlo.add %a, %k : {V}",
])
@pytest.mark.parametrize("start", ["%zero", "%r"])
def test_ops_that_take_pairs_apart(lines: str, start: str) -> None:
    body = f"{GRADIENT}%a = stablehlo.multiply %acc, %r : {V}\n{lines}"
    assert shift(accumulate(body, start)).reductions() == [0]


def test_a_select_hands_on_what_both_sides_hold() -> None:
    body = f"{GRADIENT}%k = stablehlo.add %acc, %g : {V}\n%new = stablehlo.select %go, %k, %acc : tensor<i1>, {V}"
    view, parts = parts_of(accumulate(body, "%r"))
    assert parts.of(view.ops("stablehlo.while")[0].results[1]).form == "value" and not parts.slots
    assert shift(accumulate(body, "%r")).carried() == [2]


def test_a_product_of_matrices_is_not_computed_twice() -> None:
    square = "tensor<4x4xf32>"
    body = f"""{GRADIENT}%k = stablehlo.add %g, %extra : {V}
      %m = stablehlo.dot_general %k, %weights, contracting_dims = [0] x [0] : ({V}, {square}) -> {V}
      %new = stablehlo.add %acc, %m : {V}"""

    def text(extra: str) -> str:
        return region(f"%weights = stablehlo.broadcast_in_dim %r, dims = [1] : ({V}) -> {square}\n"
                      + loop("l", 4, {"acc": "%zero"}, body.replace("%extra", extra), "%new"), "%l#1")
    assert shift(text("%zero")).reductions() == [0]
    kept = shift(text("%r"))
    assert not kept.changed
    assert kept.remarks == [("missed", "stablehlo.dot_general needs the reduced value in the loop: it would have to be "
                             "computed twice, for the reduced part and for the rest")]


def test_what_a_reader_gets_of_a_value() -> None:
    view, parts = parts_of(accumulate(f"{GRADIENT}%k = stablehlo.negate %g {{test.v}} : {V}\n"
                                      f"%new = stablehlo.add %acc, %k {{test.t}} : {V}", "%r"))
    negated, total = marked(view), marked(view, "t")
    assert parts.is_deferred(negated, owner_op(total)) and parts.holds_local(negated)
    reshape = next(iter(view.ops("stablehlo.while")[0].results[1].uses)).owner.operation
    result = view.ops("stablehlo.while")[0].results[1]
    assert parts.holds_local(result) and not parts.is_deferred(result, reshape)
    assert parts.contribution(result, reshape).form == "reduced"
    outside = defining_op(negated)
    start = view.ops("stablehlo.while")[0].operands[1]
    assert outside is not None and parts.contribution(start, outside).form == "value"
    assert parts.costly_copies() == []


def test_long_chains_are_worked_out_without_recursion() -> None:
    chain = "".join(f"%k{i + 1} = stablehlo.add %k{i}, %r : {V}\n" for i in range(1500))
    body = f"{GRADIENT}%k0 = stablehlo.negate %g : {V}\n{chain}%new = stablehlo.add %acc, %k1500 : {V}"
    before = module(accumulate(body)).module
    after = before.clone()
    assert run_passes(after, [CommShift()], PassContext()) and not after.verify()
