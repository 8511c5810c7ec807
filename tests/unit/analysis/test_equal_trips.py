"""Loops that must run equally often on the members of a group, or the program would never end."""

from __future__ import annotations

import pytest
from spmd_helpers import PRELUDE, N, V, loop, module, region

from hlorewrite.analysis.uniform_trip_count import entered_once, equal_trip_predicates
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.inline import inline_calls
from hlorewrite.ir.view import View

ALL = ((0, 1, 2, 3),)
ADD = f"%g = AR(%acc) : {V}\n%new = stablehlo.add %g, %acc : {V}"
FUNCTION = f"""func.func private @f(%n: {N}, %s: {V}) -> {V} {{
{PRELUDE}
{loop("l", "%n", {"acc": "%s"}, ADD, "%new")}
return %l#1 : {V}
}}"""
CALL = f"func.call @f(%me, %s) : ({N}, {V}) -> {V}\n"


def proven(body: str, out: str = "%l#1", rows: tuple[tuple[int, ...], ...] = ALL, functions: str = "") -> int:
    view = module(region(body, out, functions=functions))
    return len(equal_trip_predicates(view, rows, ("flattened_ids",)))


def test_a_collective_in_each_iteration_proves_equal_trips() -> None:
    assert proven(loop("l", "%me", {"acc": "%s"}, ADD, "%new")) == 1


def test_without_a_collective_nothing_is_proven() -> None:
    assert proven(loop("l", "%me", {"acc": "%s"}, f"%new = stablehlo.add %acc, %acc : {V}", "%new")) == 0


def test_a_collective_in_the_condition_counts_when_the_condition_reads_it() -> None:
    condition = """%any = AR.or(%lt) : tensor<i1>
      %more = stablehlo.or %any, %lt : tensor<i1>"""
    body = f"%new = stablehlo.add %acc, %acc : {V}"
    assert proven(loop("l", "%me", {"acc": "%s"}, body, "%new", condition=condition)) == 1


@pytest.mark.parametrize(("over", "rows", "count"), [
    ("[[0, 1], [2, 3]]", ((0, 1), (2, 3)), 1),
    ("[[0, 1], [2, 3]]", ((1, 0), (3, 2)), 1),
    ("[[0, 1], [2, 3]]", ALL, 0),
    ("[[0, 1], [2, 3]]", ((0, 2), (1, 3)), 0),
    ("[[0, 1, 2, 3]]", ((0, 2), (1, 3)), 1),
    ("[[0], [1], [2], [3]]", ((0, 1), (2, 3)), 0),
    ("[[0, 1], [2, 3]]", ((0,), (1,), (2,), (3,)), 1),
])
def test_groups_lie_within_those_of_the_collective(over: str, rows: tuple[tuple[int, ...], ...], count: int) -> None:
    body = f"%g = AR(%acc) over {over} : {V}\n%new = stablehlo.add %g, %acc : {V}"
    assert proven(loop("l", "%me", {"acc": "%s"}, body, "%new"), rows=rows) == count


def test_groups_of_several_collectives_join() -> None:
    body = f"""%g = AR(%acc) over [[0, 1], [2, 3]] : {V}
      %h = AR(%g) over [[0, 2], [1, 3]] : {V}
      %new = stablehlo.add %h, %acc : {V}"""
    assert proven(loop("l", "%me", {"acc": "%s"}, body, "%new")) == 1


def test_a_collective_in_a_branch_proves_nothing() -> None:
    body = f"""%new = "stablehlo.if"(%go) ({{
        %g = AR(%acc) : {V} stablehlo.return %g : {V} }}, {{ stablehlo.return %acc : {V} }}) : (tensor<i1>) -> {V}"""
    assert proven(loop("l", "%me", {"acc": "%s"}, body, "%new")) == 0


def test_a_collective_that_nothing_reads_proves_nothing() -> None:
    dead = f"%g = AR(%acc) : {V}\n%h = stablehlo.negate %g : {V}\n%new = stablehlo.add %acc, %acc : {V}"
    assert proven(loop("l", "%me", {"acc": "%s"}, dead, "%new")) == 0
    carried = f"%g = AR(%acc) : {V}\n%same = stablehlo.add %acc, %acc : {V}"
    two = loop("l", "%me", {"acc": "%s", "other": "%s"}, carried, "%same, %g")
    assert proven(two) == 0
    assert proven(two, "%l#2") == 1


@pytest.mark.parametrize(("body", "following"), [
    (f"%g = AR(%s) : {V}\n%new = stablehlo.add %g, %acc : {V}", "%new"),
    (f"%g = AR(%r) : {V}\n%h = AR(%g) : {V}\n%new = stablehlo.add %h, %acc : {V}", "%new"),
    (f"%z = stablehlo.multiply %acc, %zero : {V}\n%g = AR(%z) : {V}\n%new = stablehlo.add %g, %acc : {V}", "%new"),
    (f"%z = stablehlo.subtract %acc, %acc : {V}\n%g = AR(%z) : {V}\n%new = stablehlo.add %g, %acc : {V}", "%new"),
    (f"%g = AR(%acc) : {V}\n%z = stablehlo.multiply %g, %zero : {V}\n%new = stablehlo.add %z, %acc : {V}", "%new"),
    (f"%b = stablehlo.optimization_barrier %acc : {V}\n%g = AR(%b) : {V}", "%b"),
])
def test_a_collective_that_a_compiler_may_move_or_drop_proves_nothing(body: str, following: str) -> None:
    assert proven(loop("l", "%me", {"acc": "%s"}, body, following)) == 0


@pytest.mark.parametrize("operand", [
    "%turn = stablehlo.convert %i_l : (tensor<i32>) -> tensor<f32>\n"
    f"%turns = stablehlo.broadcast_in_dim %turn, dims = [] : (tensor<f32>) -> {V}\n"
    f"%x = stablehlo.multiply %s, %turns : {V}",
    f"%x = stablehlo.negate %acc : {V}", f"%x = stablehlo.tanh %acc : {V}",
    f"%x = stablehlo.select %go, %acc, %s : tensor<i1>, {V}"])
def test_a_collective_of_what_changes_proves_equal_trips(operand: str) -> None:
    body = f"{operand}\n%g = AR(%x) : {V}\n%new = stablehlo.add %acc, %g : {V}"
    assert proven(loop("l", "%me", {"acc": "%s"}, body, "%new")) == 1


def test_a_loop_that_is_entered_again_is_not_proven() -> None:
    inner = loop("k", "%me", {"acc": "%outer"}, ADD, "%new")
    assert proven(loop("l", 5, {"outer": "%s"}, inner, "%k#1")) == 0
    outer_too = f"{inner}\n%h = AR(%outer) : {V}"
    assert proven(loop("l", "%me", {"outer": "%s"}, outer_too, "%h")) == 1  # the outer one only


def test_a_loop_in_a_branch_is_not_proven() -> None:
    inner = loop("k", "%me", {"acc": "%s"}, ADD, "%new")
    body = f"""%l = "stablehlo.if"(%mine) ({{ {inner}
        stablehlo.return %k#1 : {V} }}, {{ stablehlo.return %s : {V} }}) : (tensor<i1>) -> {V}"""
    assert proven(body, "%l") == 0


@pytest.mark.parametrize(("calls", "count"), [
    (f"%a = {CALL}", 1), (f"%b = {CALL}%a = {CALL}", 0),
    (loop("l", 2, {"acc": "%s"}, f"%new = {CALL}", "%new") + f"\n%a = stablehlo.negate %l#1 : {V}", 0)])
def test_a_function_called_once_is_entered_once(calls: str, count: int) -> None:
    assert proven(calls, "%a", functions=FUNCTION) == count


@pytest.mark.parametrize(("calls", "copies"), [(f"%a = {CALL}", 1), (f"%a = {CALL}%b = {CALL}", 2)])
def test_copies_of_an_inlined_loop_are_not_proven(calls: str, copies: int) -> None:
    total = f"%c = stablehlo.add %a, %{'a' if copies == 1 else 'b'} : {V}"
    view = module(region(calls + total, "%c", functions=FUNCTION))
    inline_calls(Editor(view))
    assert len(view.ops("stablehlo.while")) == copies
    assert len(equal_trip_predicates(view, ALL, ("flattened_ids",))) == (1 if copies == 1 else 0)


def test_functions_that_nothing_calls_and_public_ones_that_are_called() -> None:
    view: View = module(region(f"%a = {CALL}", "%a", functions=FUNCTION.replace("private", "public")))
    assert not entered_once(view.ops("stablehlo.while")[0], view)
    unused = module(region("", functions=FUNCTION))
    assert not entered_once(unused.ops("stablehlo.while")[0], unused)
