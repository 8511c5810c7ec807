"""Trip counts and executed times of loops."""

from __future__ import annotations

import pytest
from spmd_helpers import marked, module

from hlorewrite.analysis.block_frequency import ASSUMED_TRIPS, executed_times
from hlorewrite.analysis.loops import constant_integer, trip_count
from hlorewrite.ir.regions import Loop
from hlorewrite.ir.view import View, owner_op

N = "tensor<i32>"


def counted(start: str = "0", compare: str = "LT, %i, %bound", bound: str = "10", step: str = "add %i, %s",
            by: str = "1", carried_next: str = "%n") -> View:
    """A loop that carries a counter, its bound and a value."""
    return module(f"""func.func @main(%x: {N}) -> {N} {{
      %start = stablehlo.constant dense<{start}> : {N}
      %limit = stablehlo.constant dense<{bound}> : {N}
      %r:3 = stablehlo.while(%i = %start, %n = %limit, %v = %x) : {N}, {N}, {N}
      cond {{
        %bound = stablehlo.constant dense<{bound}> : {N}
        %p = stablehlo.compare {compare} : ({N}, {N}) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %s = stablehlo.constant dense<{by}> : {N}
        %j = stablehlo.{step} : {N}
        %w = stablehlo.add %v, %i : {N}
        stablehlo.return %j, {carried_next}, %w : {N}, {N}, {N}
      }}
      return %r#2 : {N} }}""")


def trips(view: View) -> int | None:
    return trip_count(view.ops("stablehlo.while")[0])


@pytest.mark.parametrize(("start", "compare", "bound", "step", "by", "expected"), [
    ("0", "LT, %i, %bound", "10", "add %i, %s", "1", 10), ("0", "LT, %i, %bound", "10", "add %i, %s", "3", 4),
    ("0", "LE, %i, %bound", "9", "add %i, %s", "3", 4), ("2", "LE, %i, %bound", "2", "add %i, %s", "1", 1),
    ("10", "GT, %i, %bound", "0", "subtract %i, %s", "3", 4), ("10", "GE, %i, %bound", "1", "subtract %i, %s", "3", 4),
    ("10", "GT, %i, %bound", "0", "add %i, %s", "-1", 10), ("0", "NE, %i, %bound", "6", "add %i, %s", "2", 3),
    ("6", "NE, %i, %bound", "0", "subtract %i, %s", "2", 3), ("4", "NE, %i, %bound", "4", "add %i, %s", "2", 0),
    ("5", "LT, %i, %bound", "5", "add %i, %s", "1", 0), ("9", "LT, %i, %bound", "5", "add %i, %s", "1", 0),
    ("0", "GT, %bound, %i", "10", "add %i, %s", "1", 10), ("0", "GE, %bound, %i", "10", "add %i, %s", "1", 11),
    ("10", "LT, %bound, %i", "0", "subtract %i, %s", "1", 10), ("0", "NE, %bound, %i", "5", "add %s, %i", "1", 5),
    ("-3", "LT, %i, %bound", "3", "add %s, %i", "2", 3),
])
def test_counts_in_every_direction(start: str, compare: str, bound: str, step: str, by: str, expected: int) -> None:
    assert trips(counted(start, compare, bound, step, by)) == expected


@pytest.mark.parametrize(("compare", "step", "by"), [
    ("LT, %i, %bound", "subtract %i, %s", "1"), ("GT, %i, %bound", "add %i, %s", "1"),
    ("EQ, %i, %bound", "add %i, %s", "1"), ("NE, %i, %bound", "add %i, %s", "3"),
    ("NE, %i, %bound", "subtract %i, %s", "1"), ("LT, %i, %bound", "add %i, %s", "0"),
    ("LT, %i, %bound", "multiply %i, %s", "2"), ("LT, %i, %bound", "subtract %s, %i", "1"),
    ("LT, %i, %bound", "add %i, %i", "1"), ("LT, %i, %bound", "add %i, %v", "1"), ("LT, %i, %v", "add %i, %s", "1"),
    ("LT, %v, %bound", "add %i, %s", "1"), ("LT, %bound, %bound", "add %i, %s", "1"),
])
def test_counts_that_are_not_constant_are_unknown(compare: str, step: str, by: str) -> None:
    assert trips(counted(compare=compare, step=step, by=by)) is None


@pytest.mark.parametrize(("start", "compare", "bound", "by", "expected"), [
    ("2147483640", "LT, %i, %bound", "2147483645", "5", 1), ("2147483640", "LT, %i, %bound", "2147483645", "8", None),
    ("-2147483640", "GT, %i, %bound", "-2147483645", "-4", 2),
    ("-2147483640", "GT, %i, %bound", "-2147483645", "-9", None),
])
def test_counters_that_leave_their_type_are_unknown(start: str, compare: str, bound: str, by: str,
                                                    expected: int | None) -> None:
    """2147483640 + 8 is no 32-bit number: the loop goes on from the other end of the type."""
    assert trips(counted(start, compare, bound, "add %i, %s", by)) == expected


def test_a_bound_carried_unchanged_is_a_constant_and_a_changing_one_is_not() -> None:
    assert trips(counted(compare="LT, %i, %n")) == 10
    assert trips(counted(compare="LT, %i, %n", carried_next="%j")) is None


def test_a_start_from_outside_and_other_predicates_are_unknown() -> None:
    view = module(f"""func.func @main(%x: {N}, %go: tensor<i1>) -> ({N}, {N}) {{
      %c = stablehlo.constant dense<4> : {N}
      %a = stablehlo.while(%i = %x) : {N}
      cond {{
        %p = stablehlo.compare LT, %i, %c : ({N}, {N}) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %s = stablehlo.constant dense<1> : {N}
        %j = stablehlo.add %i, %s : {N}
        stablehlo.return %j : {N}
      }}
      %b = stablehlo.while(%i = %x) : {N}
      cond {{
        stablehlo.return %go : tensor<i1>
      }} do {{
        stablehlo.return %i : {N}
      }}
      return %a, %b : {N}, {N} }}""")
    assert [trip_count(op) for op in view.ops("stablehlo.while")] == [None, None]


def test_the_parts_of_a_loop() -> None:
    view = counted()
    loop = Loop(view.ops("stablehlo.while")[0])
    assert owner_op(loop.predicate).name == "stablehlo.compare"
    assert [len(loop.yields), len(loop.body.arguments), len(loop.condition.arguments)] == [3, 3, 3]


@pytest.mark.parametrize(("expression", "value"), [
    ("stablehlo.constant {test.v} dense<7> : tensor<i32>", 7),
    ("stablehlo.constant {test.v} dense<[5]> : tensor<1xi32>", 5),
    ("stablehlo.constant {test.v} dense<3> : tensor<4xui8>", 3),
    ("stablehlo.constant {test.v} dense<[1, 2]> : tensor<2xi32>", None),
    ("stablehlo.constant {test.v} dense<7.0> : tensor<f32>", None),
    ("stablehlo.convert %seven {test.v} : (tensor<i32>) -> tensor<i64>", 7),
    ("stablehlo.broadcast_in_dim %seven, dims = [] {test.v} : (tensor<i32>) -> tensor<3xi32>", 7),
    ("stablehlo.reshape %seven {test.v} : (tensor<i32>) -> tensor<1xi32>", 7),
    ("stablehlo.add %seven, %seven {test.v} : tensor<i32>", None),
    ("stablehlo.convert %x {test.v} : (tensor<i32>) -> tensor<i64>", None),
])
def test_integer_constants(expression: str, value: int | None) -> None:
    view = module(f"""func.func @main(%x: {N}) {{
      %seven = stablehlo.constant dense<7> : {N}
      %v = {expression}
      return }}""")
    assert constant_integer(marked(view)) == value


def nested(inner_bound: str) -> str:
    return f"""func.func @main(%x: {N}, %go: tensor<i1>) -> {N} {{
      %zero = stablehlo.constant dense<0> : {N}
      %one = stablehlo.constant dense<1> : {N}
      %six = stablehlo.constant dense<6> : {N}
      %r:2 = stablehlo.while(%i = %zero, %v = %x) : {N}, {N}
      cond {{
        %p = stablehlo.compare LT, %i, %six : ({N}, {N}) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %k = "stablehlo.if"(%go) ({{
          %q:2 = stablehlo.while(%j = %zero, %w = %v) : {N}, {N}
          cond {{
            %p = stablehlo.compare LT, %j, {inner_bound} : ({N}, {N}) -> tensor<i1>
            stablehlo.return %p : tensor<i1>
          }} do {{
            %n = stablehlo.add %j, %one {{test.v}} : {N}
            stablehlo.return %n, %w : {N}, {N}
          }}
          stablehlo.return %q#1 : {N}
        }}, {{
          stablehlo.return %v : {N}
        }}) : (tensor<i1>) -> {N}
        %n = stablehlo.add %i, %one : {N}
        stablehlo.return %n, %k : {N}, {N}
      }}
      return %r#1 : {N} }}"""


def test_executed_times_multiply_loops_and_share_branches() -> None:
    known, unknown = module(nested("%six")), module(nested("%x"))
    assert executed_times(owner_op(marked(known))) == (6 * 6 / 2, True)
    assert executed_times(owner_op(marked(unknown))) == (6 * ASSUMED_TRIPS / 2, False)
    outside = module(f"func.func @main(%x: {N}) {{ %v = stablehlo.add %x, %x {{test.v}} : {N} return }}")
    assert executed_times(owner_op(marked(outside))) == (1.0, True)


@pytest.mark.parametrize(("source", "number", "target", "expected"), [
    ("i32", "7", "i8", 7), ("i32", "300", "i8", None), ("i32", "-1", "ui8", None), ("i32", "200", "ui8", 200),
    ("ui8", "200", "i8", None), ("i32", "3", "f32", None), ("i32", "1", "i1", 1), ("i32", "2", "i1", None)])
def test_a_convert_may_make_another_number(source: str, number: str, target: str, expected: int | None) -> None:
    """A constant counts only where every type on the way holds it."""
    view = module(f"""func.func @main() -> tensor<{target}> {{
      %c = stablehlo.constant dense<{number}> : tensor<{source}>
      %d = stablehlo.convert %c : (tensor<{source}>) -> tensor<{target}>
      return %d : tensor<{target}> }}""")
    [convert] = view.ops("stablehlo.convert")
    assert constant_integer(convert.results[0]) == expected
