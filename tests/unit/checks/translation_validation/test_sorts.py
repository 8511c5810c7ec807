"""Sorts by their comparators: expanded and stable ones, top elements; and comparators that order something else."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import pytest

from hlorewrite.checks.reference.refute import refute
from hlorewrite.checks.translation_validation.equivalence import Certainty, prove
from hlorewrite.ir.load import parse


def sort(comparator: str, *, stable: bool = False, transposed: bool = False) -> str:
    """A module that sorts rows, and numbers with them."""
    turn = "%x = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x8xf32>) -> tensor<8x3xf32>" if transposed else ""
    shape, along, name = ("8x3", 0, "%x") if transposed else ("3x8", 1, "%a")
    back = ("%r = stablehlo.transpose %s#0, dims = [1, 0] : (tensor<8x3xf32>) -> tensor<3x8xf32>\n"
            "%n = stablehlo.transpose %s#1, dims = [1, 0] : (tensor<8x3xi32>) -> tensor<3x8xi32>") if transposed else ""
    results = "%r, %n" if transposed else "%s#0, %s#1"
    return f"""func.func @main(%a: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xi32>) {{
      {turn}
      %i = stablehlo.iota dim = {along} : tensor<{shape}xi32>
      %s:2 = "stablehlo.sort"({name}, %i) <{{dimension = {along} : i64, is_stable = {str(stable).lower()}}}> ({{
        ^bb0(%p: tensor<f32>, %q: tensor<f32>, %k: tensor<i32>, %l: tensor<i32>):
        {comparator}
        stablehlo.return %c : tensor<i1>
      }}) : (tensor<{shape}xf32>, tensor<{shape}xi32>) -> (tensor<{shape}xf32>, tensor<{shape}xi32>)
      {back}
      return {results} : tensor<3x8xf32>, tensor<3x8xi32>
    }}"""


def key(name: str, of: str) -> str:
    """The integer that orders floats totally."""
    return f"""%{name}b = stablehlo.bitcast_convert %{of} : (tensor<f32>) -> tensor<i32>
        %{name}n = stablehlo.compare LT, %{name}b, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %{name}x = stablehlo.xor %{name}b, %most : tensor<i32>
        %{name} = stablehlo.select %{name}n, %{name}x, %{name}b : tensor<i1>, tensor<i32>"""


CONSTANTS = "%zero = stablehlo.constant dense<0> : tensor<i32>\n%most = stablehlo.constant dense<2147483647> : tensor<i32>"
TOTAL = "%c = stablehlo.compare LT, %p, %q, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>"
EXPANDED = f"{CONSTANTS}\n{key('u', 'p')}\n{key('v', 'q')}\n%c = stablehlo.compare LT, %u, %v : (tensor<i32>, tensor<i32>) -> tensor<i1>"
ONE_WAY = "%o = stablehlo.compare LT, %p, %q, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>"
OTHER_WAY = "%w = stablehlo.compare LT, %q, %p, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>"
TIES = f"""{ONE_WAY}
        {OTHER_WAY}
        %e = stablehlo.compare EQ, %o, %w : (tensor<i1>, tensor<i1>) -> tensor<i1>
        %f = stablehlo.compare LT, %k, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %c = stablehlo.select %e, %f, %o : tensor<i1>, tensor<i1>"""
PAIRS = {
    "comparison-expander": (sort(TOTAL, stable=True), sort(EXPANDED, stable=True),
                            sort(EXPANDED.replace("2147483647", "2147483646"), stable=True)),
    "stable-sort-expander": (sort(TOTAL, stable=True), sort(TIES), sort(TIES.replace("LT, %k, %l", "LT, %l, %k"))),
    "transposed": (sort(TOTAL, stable=True), sort(TOTAL, stable=True, transposed=True),
                   sort(TOTAL.replace("LT", "GT"), stable=True, transposed=True)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_sorts_that_xla_writes_otherwise(name: str):
    original, equal, different = map(parse, PAIRS[name])
    assert prove(original, equal).verdict is Certainty.PROVED
    assert prove(original, different).verdict is Certainty.UNKNOWN
    if name != "comparison-expander":  # the last bit of a negative number is in no draw
        assert refute(original, different).example is not None


def test_an_unstable_sort_is_not_taken_for_a_stable_one():
    assert prove(parse(sort(TOTAL)), parse(sort(TOTAL, stable=True))).verdict is Certainty.UNKNOWN


def test_top_elements_are_the_first_of_a_stable_sort():
    compare = "%c = stablehlo.compare GT, %p, %q, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>"
    top = f"""func.func @main(%a: tensor<3x8xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {{
      %t = stablehlo.custom_call @TopK(%a) {{called_computations = [@greater]}} : (tensor<3x8xf32>) -> tuple<tensor<3x2xf32>, tensor<3x2xi32>>
      %v = stablehlo.get_tuple_element %t[0] : (tuple<tensor<3x2xf32>, tensor<3x2xi32>>) -> tensor<3x2xf32>
      %n = stablehlo.get_tuple_element %t[1] : (tuple<tensor<3x2xf32>, tensor<3x2xi32>>) -> tensor<3x2xi32>
      return %v, %n : tensor<3x2xf32>, tensor<3x2xi32>
    }}
    func.func private @greater(%p: tensor<f32>, %q: tensor<f32>, %k: tensor<i32>, %l: tensor<i32>) -> tensor<i1> {{
      {compare}
      return %c : tensor<i1>
    }}"""
    sliced = sort(compare, stable=True).replace(
        "return %s#0, %s#1 : tensor<3x8xf32>, tensor<3x8xi32>",
        "%v = stablehlo.slice %s#0 [0:3, 0:2] : (tensor<3x8xf32>) -> tensor<3x2xf32>\n"
        "%n = stablehlo.slice %s#1 [0:3, 0:2] : (tensor<3x8xi32>) -> tensor<3x2xi32>\n"
        "return %v, %n : tensor<3x2xf32>, tensor<3x2xi32>").replace(
        "-> (tensor<3x8xf32>, tensor<3x8xi32>) {", "-> (tensor<3x2xf32>, tensor<3x2xi32>) {", 1)
    assert prove(parse(top), parse(sliced)).verdict is Certainty.PROVED
    assert prove(parse(top), parse(sliced.replace("0:2]", "1:3]"))).verdict is Certainty.UNKNOWN
