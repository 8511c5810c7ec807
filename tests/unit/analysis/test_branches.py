"""How often each branch is taken, where constants and loop counters decide."""

from __future__ import annotations

from fractions import Fraction

import pytest
from spmd_helpers import N, V, loop, module, region

from hlorewrite.analysis.block_frequency import executed_times, never_runs, taken_shares
from hlorewrite.cost.report.collectives import counted_collectives

HALF = (Fraction(1, 2), Fraction(1, 2))


def shares(lines: str, trips: int | str = 6, predicate: str = "%p") -> tuple[Fraction, ...] | None:
    fork = (f'%b = "stablehlo.if"({predicate}) ({{ %g = AR(%s) : {V} stablehlo.return %g : {V} }}, '
            f"{{ stablehlo.return %acc : {V} }}) : (tensor<i1>) -> {V}")
    view = module(region(loop("l", trips, {"acc": "%zero"}, f"{lines}\n{fork}", "%b"), "%l#1"))
    found = taken_shares(view.ops("stablehlo.if")[0])
    times = executed_times(view.ops("stablehlo.all_reduce")[0])[0]
    if isinstance(trips, int):
        assert times == trips * float((found or HALF)[0])
    return found


@pytest.mark.parametrize(("index", "runs"), [(0, True), (1, False), (7, False), ("%ix", True)])
def test_what_stands_in_a_branch_that_a_constant_rules_out_is_not_counted(index: int | str, runs: bool):
    constant = "" if isinstance(index, str) else f"%at = stablehlo.constant dense<{index}> : {N}"
    fork = (f'%b = "stablehlo.case"({index if isinstance(index, str) else "%at"}) ({{ %g = AR(%s) : {V} '
            f"stablehlo.return %g : {V} }}, {{ stablehlo.return %acc : {V} }}) : ({N}) -> {V}")
    body = f"%ix = stablehlo.add %i_l, %i_l : {N}\n{constant}\n{fork}"
    view = module(region(loop("l", 6, {"acc": "%zero"}, body, "%b"), "%l#1"))
    assert never_runs(view.ops("stablehlo.all_reduce")[0]) is not runs
    assert len(counted_collectives(view)[1]) == runs


def compare(direction: str, left: str, right: str) -> str:
    return f"%p = stablehlo.compare {direction}, {left}, {right} : ({N}, {N}) -> tensor<i1>"


TWO = f"%two = stablehlo.constant dense<2> : {N}\n%odd = stablehlo.remainder %i_l, %two : {N}\n"


@pytest.mark.parametrize(("lines", "expected"), [
    (compare("EQ", "%i_l", "%c1"), (Fraction(1, 6), Fraction(5, 6))),
    (compare("GE", "%i_l", "%c1"), (Fraction(5, 6), Fraction(1, 6))),
    (TWO + compare("EQ", "%odd", "%c0"), HALF),
    (compare("EQ", "%c0", "%c1"), (Fraction(0), Fraction(1))),
    (compare("EQ", "%i_l", "%n"), None),
    (compare("EQ", "%i_l", "%me"), None),
])
def test_counters_and_constants_decide(lines: str, expected: tuple[Fraction, ...] | None) -> None:
    assert shares(lines) == expected


def test_an_unknown_trip_count_leaves_it_open_unless_a_constant_decides() -> None:
    assert shares(compare("EQ", "%i_l", "%c1"), "%n") is None
    assert shares(compare("EQ", "%c0", "%c0"), "%n") == (Fraction(1), Fraction(0))


def test_a_case_takes_its_last_branch_for_what_is_out_of_range() -> None:
    fork = (f'%b = "stablehlo.case"(%i_l) ({{ stablehlo.return %acc : {V} }}, {{ stablehlo.return %s : {V} }}) : '
            f"({N}) -> {V}")
    view = module(region(loop("l", 4, {"acc": "%zero"}, fork, "%b"), "%l#1"))
    assert taken_shares(view.ops("stablehlo.case")[0]) == (Fraction(1, 4), Fraction(3, 4))


def test_a_branch_deeper_inside_is_left_open() -> None:
    fork = (f'\n%b = "stablehlo.if"(%p) ({{ stablehlo.return %a : {V} }}, {{ stablehlo.return %s : {V} }}) : '
            f"(tensor<i1>) -> {V}")
    inner = loop("k", 2, {"a": "%acc"}, compare("EQ", "%i_l", "%c1") + fork, "%b")
    view = module(region(loop("l", 4, {"acc": "%zero"}, inner, "%k#1"), "%l#1"))
    assert taken_shares(view.ops("stablehlo.if")[0]) is None


def test_counters_of_any_integer_type_count_down_and_call_functions() -> None:
    """An unsigned counter that falls, compared in a function as jnp.remainder is."""
    u = "tensor<ui8>"
    functions = f"""func.func private @even(%x: {u}) -> tensor<i1> {{
      %two = stablehlo.constant dense<2> : {u}
      %zero = stablehlo.constant dense<0> : {u}
      %odd = stablehlo.remainder %x, %two : {u}
      %p = stablehlo.compare EQ, %odd, %zero : ({u}, {u}) -> tensor<i1>
      return %p : tensor<i1>
      }}"""
    view = module(region(f"""%start = stablehlo.constant dense<7> : {u}
      %end = stablehlo.constant dense<2> : {u}
      %one8 = stablehlo.constant dense<1> : {u}
      %l:2 = stablehlo.while(%i = %start, %acc = %zero) : {u}, {V}
      cond {{
        %lt = stablehlo.compare GT, %i, %end : ({u}, {u}) -> tensor<i1>
        stablehlo.return %lt : tensor<i1>
      }} do {{
        %p = func.call @even(%i) : ({u}) -> tensor<i1>
        %b = "stablehlo.if"(%p) ({{ stablehlo.return %acc : {V} }}, {{ stablehlo.return %s : {V} }}) :
          (tensor<i1>) -> {V}
        %next = stablehlo.subtract %i, %one8 : {u}
        stablehlo.return %next, %b : {u}, {V}
      }}""", "%l#1", functions=functions))
    assert taken_shares(view.ops("stablehlo.if")[0]) == (Fraction(2, 5), Fraction(3, 5))
