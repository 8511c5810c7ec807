"""Index expressions, evaluated for each device."""

from __future__ import annotations

import numpy as np
import pytest
from spmd_helpers import marked, module

from hlorewrite.analysis.per_device_constants import PerDeviceConstants

HEAD = """func.func @main(%x: tensor<i32>, %f: tensor<4xf32>) {
      %id = stablehlo.partition_id : tensor<ui32>
      %p = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %c2 = stablehlo.constant dense<2> : tensor<i32>
      %c3 = stablehlo.constant dense<3> : tensor<i32>
      %t = stablehlo.constant dense<[3, 1, 4, 1, 5, 9]> : tensor<6xi32>
      %m = stablehlo.subtract %p, %c3 : tensor<i32>
"""


def table(lines: str, functions: str = "", *, floats: bool = False) -> list[object] | None:
    """The value marked ``test.v`` on devices 0 to 3; None when it is unknown."""
    view = module(f"{HEAD}{lines}\n return }}\n{functions}")
    rows = PerDeviceConstants([0, 1, 2, 3], floats=floats).table(marked(view))
    return None if rows is None else [np.asarray(each).tolist() for each in rows]


S = "tensor<i32>"


@pytest.mark.parametrize(("line", "values"), [
    (f"%v = stablehlo.add %p, %c2 {{test.v}} : {S}", [2, 3, 4, 5]),
    (f"%v = stablehlo.subtract %p, %c2 {{test.v}} : {S}", [-2, -1, 0, 1]),
    (f"%v = stablehlo.multiply %p, %c3 {{test.v}} : {S}", [0, 3, 6, 9]),
    (f"%v = stablehlo.divide %p, %c2 {{test.v}} : {S}", [0, 0, 1, 1]),
    (f"%v = stablehlo.divide %m, %c2 {{test.v}} : {S}", [-1, -1, 0, 0]),
    (f"%v = stablehlo.remainder %p, %c2 {{test.v}} : {S}", [0, 1, 0, 1]),
    (f"%v = stablehlo.remainder %m, %c2 {{test.v}} : {S}", [-1, 0, -1, 0]),
    (f"%v = stablehlo.negate %p {{test.v}} : {S}", [0, -1, -2, -3]),
    (f"%v = stablehlo.maximum %p, %c2 {{test.v}} : {S}", [2, 2, 2, 3]),
    (f"%v = stablehlo.minimum %p, %c2 {{test.v}} : {S}", [0, 1, 2, 2]),
    (f"%v = stablehlo.and %p, %c2 {{test.v}} : {S}", [0, 0, 2, 2]),
    (f"%v = stablehlo.or %p, %c2 {{test.v}} : {S}", [2, 3, 2, 3]),
    (f"%v = stablehlo.xor %p, %c3 {{test.v}} : {S}", [3, 2, 1, 0]),
    (f"%v = stablehlo.not %p {{test.v}} : {S}", [-1, -2, -3, -4]),
    (f"%v = stablehlo.sign %m {{test.v}} : {S}", [-1, -1, -1, 0]),
    (f"%v = stablehlo.abs %m {{test.v}} : {S}", [3, 2, 1, 0]),
    (f"%v = stablehlo.clamp %c0, %m, %c2 {{test.v}} : {S}", [0, 0, 0, 0]),
    (f"%v = stablehlo.clamp %c2, %p, %c3 {{test.v}} : {S}", [2, 2, 2, 3]),
    (f"%v = stablehlo.convert %p {{test.v}} : ({S}) -> tensor<i1>", [False, True, True, True]),
    (f"%v = stablehlo.convert %m {{test.v}} : ({S}) -> tensor<ui8>", [253, 254, 255, 0]),
    (f"%v = stablehlo.broadcast_in_dim %p, dims = [] {{test.v}} : ({S}) -> tensor<2xi32>",
     [[0, 0], [1, 1], [2, 2], [3, 3]]),
    (f"%b = stablehlo.broadcast_in_dim %p, dims = [] : ({S}) -> tensor<2xi32>\n"
     "%v = stablehlo.broadcast_in_dim %b, dims = [1] {test.v} : (tensor<2xi32>) -> tensor<1x2xi32>",
     [[[0, 0]], [[1, 1]], [[2, 2]], [[3, 3]]]),
    (f"%v = stablehlo.reshape %p {{test.v}} : ({S}) -> tensor<1xi32>", [[0], [1], [2], [3]]),
    (f"%d = stablehlo.dynamic_slice %t, %p, sizes = [1] : (tensor<6xi32>, {S}) -> tensor<1xi32>\n"
     f"%v = stablehlo.reshape %d {{test.v}} : (tensor<1xi32>) -> {S}", [3, 1, 4, 1]),
    (f"%v = stablehlo.dynamic_slice %t, %m, sizes = [5] {{test.v}} : (tensor<6xi32>, {S}) -> tensor<5xi32>",
     [[3, 1, 4, 1, 5]] * 4),
    ("%v = stablehlo.slice %t [1:6:2] {test.v} : (tensor<6xi32>) -> tensor<3xi32>", [[1, 1, 9]] * 4),
    ("%v = stablehlo.iota dim = 1 {test.v} : tensor<2x3xi32>", [[[0, 1, 2], [0, 1, 2]]] * 4),
])
def test_ops_follow_the_specification(line: str, values: list[object]) -> None:
    assert table(line) == values


@pytest.mark.parametrize(("direction", "values"), [
    ("EQ", [0, 0, 1, 0]), ("NE", [1, 1, 0, 1]), ("LT", [1, 1, 0, 0]), ("LE", [1, 1, 1, 0]), ("GT", [0, 0, 0, 1]),
    ("GE", [0, 0, 1, 1])])
def test_comparisons_and_selection(direction: str, values: list[int]) -> None:
    compare = f"%q = stablehlo.compare {direction}, %p, %c2 : ({S}, {S}) -> tensor<i1>\n"
    assert table(f"{compare}%v = stablehlo.select %q, %p, %c0 {{test.v}} : tensor<i1>, {S}") == [
        place if value else 0 for place, value in enumerate(values)]


def test_division_of_the_least_number_truncates() -> None:
    least = "%l = stablehlo.constant dense<-2147483648> : tensor<i32>\n"
    assert table(f"{least}%v = stablehlo.divide %l, %c2 {{test.v}} : {S}") == [-(2**30)] * 4
    assert table(f"{least}%v = stablehlo.remainder %l, %c3 {{test.v}} : {S}") == [-2] * 4


@pytest.mark.parametrize("lines", [
    f"%v = stablehlo.add %p, %x {{test.v}} : {S}",
    f"%v = stablehlo.divide %c3, %p {{test.v}} : {S}",
    f"%v = stablehlo.remainder %c3, %p {{test.v}} : {S}",
    "%v = stablehlo.replica_id {test.v} : tensor<ui32>",
    "%v = stablehlo.convert %f {test.v} : (tensor<4xf32>) -> tensor<4xi32>",
    f"%v = stablehlo.broadcast_in_dim %p, dims = [] {{test.v}} : ({S}) -> tensor<5000xi32>",
    f"%v = stablehlo.convert %p {{test.v}} : ({S}) -> tensor<f32>",
    f"%q = stablehlo.popcnt %p : {S}\n%v = stablehlo.add %q, %p {{test.v}} : {S}",
    f"%v = stablehlo.convert %p {{test.v}} : ({S}) -> tensor<i4>",
    "%q = stablehlo.compare EQ, %p, %p : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "%v = stablehlo.negate %f {test.v} : tensor<4xf32>",
    f"""%r:2 = stablehlo.while(%i = %c0, %w = %p) : {S}, {S}
      cond {{
        %g = stablehlo.compare LT, %i, %c3 : ({S}, {S}) -> tensor<i1>
        stablehlo.return %g : tensor<i1>
      }} do {{
        stablehlo.return %c3, %w : {S}, {S}
      }}
    %v = stablehlo.add %r#1, %p {{test.v}} : {S}""",
])
def test_what_is_not_an_index_expression_is_unknown(lines: str) -> None:
    assert table(lines) is None


HALVES = f"""%h = stablehlo.convert %p : ({S}) -> tensor<f32>
      %z = stablehlo.constant dense<0.5> : tensor<f32>
      %q = stablehlo.compare EQ, %p, %c2 : ({S}, {S}) -> tensor<i1>
"""


def test_floats_are_known_where_asked_for() -> None:
    line = HALVES + "%v = stablehlo.select %q, %z, %h {test.v} : tensor<i1>, tensor<f32>"
    assert table(line, floats=True) == [0.0, 1.0, 0.5, 3.0]
    assert table(line) is None


@pytest.mark.parametrize("line", [
    "%v = stablehlo.add %h, %z {test.v} : tensor<f32>",
    f"%v = stablehlo.convert %h {{test.v}} : (tensor<f32>) -> {S}",
    "%v = stablehlo.compare EQ, %h, %z {test.v} : (tensor<f32>, tensor<f32>) -> tensor<i1>",
    f"%v = stablehlo.convert %p {{test.v}} : ({S}) -> tensor<bf16>",
])
def test_no_float_is_computed_with(line: str) -> None:
    assert table(HALVES + line, floats=True) is None


def test_very_large_expressions_are_unknown() -> None:
    chain = "".join(f"%k{i} = stablehlo.add %{'p' if i == 0 else f'k{i - 1}'}, %c2 : {S}\n" for i in range(300))
    assert table(f"{chain}%v = stablehlo.add %k299, %c0 {{test.v}} : {S}") is None
    few = "".join(f"%k{i} = stablehlo.add %{'p' if i == 0 else f'k{i - 1}'}, %c2 : {S}\n" for i in range(50))
    assert table(f"{few}%v = stablehlo.add %k49, %c0 {{test.v}} : {S}") == [100, 101, 102, 103]


def test_answers_are_remembered_for_what_they_are_made_of() -> None:
    view = module(f"{HEAD}%a = stablehlo.multiply %p, %c2 {{test.a}} : {S}\n"
                  f"%v = stablehlo.add %a, %a {{test.v}} : {S}\n"
                  f"%w = stablehlo.add %a, %x {{test.w}} : {S}\n return }}")
    devices = PerDeviceConstants([1, 3])
    for name, expected in (("v", [4, 12]), ("w", None), ("a", [2, 6]), ("w", None)):
        rows = devices.table(marked(view, name))
        assert (rows if rows is None else [int(each) for each in rows]) == expected


def test_a_function_of_known_arguments_is_evaluated() -> None:
    call = f"%v = func.call @half(%p) {{test.v}} : ({S}) -> {S}"
    half = f"""func.func private @half(%a: {S}) -> {S} {{
      %c = stablehlo.constant dense<2> : {S}
      %h = stablehlo.divide %a, %c : {S}
      return %h : {S} }}"""
    assert table(call, half) == [0, 0, 1, 1]
    itself = f"func.func private @half(%a: {S}) -> {S} {{ return %a : {S} }}"
    assert table(call, itself) == [0, 1, 2, 3]
    endless = f"""func.func private @half(%a: {S}) -> {S} {{
      %h = func.call @half(%a) : ({S}) -> {S}
      return %h : {S} }}"""
    assert table(call, endless) is None
    assert table(f"%v = func.call @half(%x) {{test.v}} : ({S}) -> {S}", half) is None
    assert table(call, f"func.func private @half(%a: {S}) -> {S}") is None


def test_what_is_unknown_is_remembered_for_its_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain that starts at an argument is looked at once, and not once for each of its values."""
    lines = "\n".join(f"%a{k} = stablehlo.add %{f'a{k - 1}' if k else 'x'}, %c2 : {S}" for k in range(50))
    view = module(f"{HEAD}{lines}\n return }}\n")
    asked: list[int] = []
    looked = PerDeviceConstants._is_evaluable
    monkeypatch.setattr(PerDeviceConstants, "_is_evaluable", lambda self, op: asked.append(1) or looked(self, op))
    tables = PerDeviceConstants([0, 1, 2, 3])
    assert all(tables.table(op.results[0]) is None for op in reversed(view.ops("stablehlo.add")))
    assert 50 <= len(asked) <= 100
