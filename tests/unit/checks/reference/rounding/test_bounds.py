"""Bounds hold, are near the differences, and each of their terms is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from hlorewrite.checks.reference.rounding import bounds as bounds_module
from hlorewrite.checks.reference.rounding.op_errors import PROPAGATED, ROUNDINGS
from hlorewrite.checks.reference.rounding.trace import NoBound
from hlorewrite.checks.reference.rounding.units import COMPILED, INTERPRETER, FloatFormat, RoundingArithmetic

from .programs import function, measured

LEFT = "%x = stablehlo.add %a, %b T; %y = stablehlo.add %x, %c T;"
RIGHT = "%x = stablehlo.add %b, %c T; %y = stablehlo.add %a, %x T;"
LARGE = "%k = stablehlo.constant dense<1.0e30> T; "


def then(sum_: str, ops: str) -> str:
    """A sum, and ops that read it as ``%s``."""
    return sum_.replace("%y", "%s") + ops


REDUCED = """%z = stablehlo.constant dense<0.0> : tensor<f32>
%y = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x64xf32>, tensor<f32>)
 -> tensor<64xf32>"""
REVERSED = "%a = stablehlo.reverse %b, dims = [0] : tensor<64x64xf32>\n" + REDUCED
ONES = """%one = stablehlo.constant dense<1.0> : tensor<1x64xf32>
%p = stablehlo.dot_general %one, %{0}, contracting_dims = [1] x [0] : (tensor<1x64xf32>, tensor<64x64xf32>)
 -> tensor<1x64xf32>
%y = stablehlo.reshape %p : (tensor<1x64xf32>) -> tensor<64xf32>"""
WIRE = """%h = stablehlo.convert %a : (tensor<4096xf32>) -> tensor<4096xbf16>
%y = stablehlo.convert %h : (tensor<4096xbf16>) -> tensor<4096xf32>"""
SHARED = """%s = stablehlo.add %a, %b : tensor<4096xf32>
%y = stablehlo.add %s, %c : tensor<4096xf32>
return %y, %s : tensor<4096xf32>, tensor<4096xf32> }"""
APART = """%s = stablehlo.add %a, %b : tensor<4096xf32>
%t = stablehlo.add %b, %c : tensor<4096xf32>
%y = stablehlo.add %a, %t : tensor<4096xf32>
return %y, %s : tensor<4096xf32>, tensor<4096xf32> }"""
TWO = ("func.func @main(%a: tensor<4096xf32>, %b: tensor<4096xf32>, %c: tensor<4096xf32>) -> "
       "(tensor<4096xf32>, tensor<4096xf32>) {\n")
MATRICES = {"type_": "tensor<64x64xf32>", "result": "tensor<64xf32>"}

PAIRS = {
    "add": (function(LEFT), function(RIGHT)),
    "subtract": (function(LEFT), function("%x = stablehlo.negate %c T; %s = stablehlo.subtract %b, %x T; "
                                          "%y = stablehlo.add %a, %s T;")),
    "multiply": (function(LEFT.replace("add", "multiply")), function(RIGHT.replace("add", "multiply"))),
    "divide": (function("%x = stablehlo.divide %a, %b T; %y = stablehlo.divide %x, %c T;"),
               function("%x = stablehlo.multiply %b, %c T; %y = stablehlo.divide %a, %x T;")),
    "reduce": (function(REDUCED, inputs="a", **MATRICES), function(REVERSED, inputs="b", **MATRICES)),
    "dot": (function(ONES.format("b"), inputs="b", **MATRICES), function(REVERSED, inputs="b", **MATRICES)),
    "convert": (function("%y = stablehlo.optimization_barrier %a : tensor<4096xf32>"), function(WIRE)),
    "underflow": (function(LARGE + "%x = stablehlo.multiply %a, %b T; %y = stablehlo.multiply %x, %k T;"),
                  function(LARGE + "%x = stablehlo.multiply %b, %k T; %y = stablehlo.multiply %a, %x T;")),
    "shared sum": (TWO + SHARED, TWO + APART),
    **{name: tuple(function(then(sum_, ops)) for sum_ in (LEFT, RIGHT)) for name, ops in {
        "times": "%y = stablehlo.multiply %s, %b T;",
        "exponential": "%y = stablehlo.exponential %s T;",
        "tanh": "%y = stablehlo.tanh %s T;",
        "logistic": "%y = stablehlo.logistic %s T;",
        "square root": "%q = stablehlo.multiply %s, %s T; %y = stablehlo.sqrt %q T;",
        "logarithm": "%e = stablehlo.exponential %a T; %f = stablehlo.exponential %s T; %g = stablehlo.add %e, %f T; "
                     "%y = stablehlo.log %g T;",
        "over": "%e = stablehlo.exponential %a T; %y = stablehlo.divide %s, %e T;",
        "maximum": "%y = stablehlo.maximum %s, %a T;",
        "sine": "%y = stablehlo.sine %s T;",
        "relu": "%z = stablehlo.constant dense<0.0> T; %p = stablehlo.compare GT, %s, %z : (tensor<4096xf32>, "
                "tensor<4096xf32>) -> tensor<4096xi1>\n"
                "%y = stablehlo.select %p, %s, %z : tensor<4096xi1>, tensor<4096xf32>",
    }.items()},
}


@pytest.mark.parametrize("name", PAIRS)
def test_no_difference_above_its_bound_and_none_far_below(name: str) -> None:
    """4096 elements come near the worst case."""
    found = measured(*PAIRS[name])
    assert found.apart.any() and found.held and not found.reason
    assert found.share > 1 / 100


@pytest.mark.parametrize("type_", ["f16", "bf16", "f64", "f8E4M3FN", "complex<f32>"])
def test_types(type_: str) -> None:
    """The unit roundoff is that of the type."""
    found = measured(*(function(each, f"tensor<4096x{type_}>") for each in (LEFT, RIGHT)))
    assert found.apart.any() and found.held and found.share > 1 / 100


def test_results_below_the_normal_range_count_with_half_the_least_number() -> None:
    """A unit roundoff relative to a subnormal result is too small."""
    found = measured(*PAIRS["underflow"], scale=1e-22)
    assert found.apart.any() and found.held


def test_integers_and_equal_expressions_have_no_room() -> None:
    """Other orders of integer sums are equal; so is what only moves elements."""
    assert not measured(*(function(each, "tensor<64xi32>") for each in (LEFT, RIGHT))).most.any()
    sliced = ("%s = stablehlo.slice %a [2:9] : (tensor<16xf32>) -> tensor<7xf32>\n"
              "%t = stablehlo.slice %b [2:9] : (tensor<16xf32>) -> tensor<7xf32>\n"
              "%y = stablehlo.add %s, %t : tensor<7xf32>")
    whole = ("%s = stablehlo.add %b, %a : tensor<16xf32>\n"
             "%y = stablehlo.slice %s [2:9] : (tensor<16xf32>) -> tensor<7xf32>")
    assert not measured(*(function(each, "tensor<16xf32>", "ab", "tensor<7xf32>")
                          for each in (sliced, whole))).most.any()


@dataclass(frozen=True)
class Removal:
    """A term of the bound, how it is removed, and the pair whose difference is then above the bound."""

    pair: str
    remove: Callable[[pytest.MonkeyPatch], None]
    scale: float = 1.0


def _zero(table: dict, name: str, value: object = 0) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setitem(table, name, value)


def _nothing(values: list, errors: list, result: np.ndarray) -> np.ndarray:
    return np.zeros(result.shape)


REMOVALS = {
    "rounding of add": Removal("add", _zero(ROUNDINGS, "add")),
    "rounding of multiply": Removal("multiply", _zero(ROUNDINGS, "multiply")),
    "rounding of divide": Removal("divide", _zero(ROUNDINGS, "divide")),
    "rounding of convert": Removal("convert", _zero(ROUNDINGS, "convert")),
    "gamma of sums": Removal("reduce", lambda patch: patch.setattr(FloatFormat, "gamma", lambda self, n: 0.0)),
    "gamma of products": Removal("dot", lambda patch: patch.setattr(FloatFormat, "gamma", lambda self, n: 0.0)),
    "underflow": Removal("underflow", lambda patch: patch.setattr(RoundingArithmetic, "floor",
                                                                   lambda self, form: 0.0), 1e-22),
    "relations in the cut": Removal("shared sum", lambda patch: patch.setattr(bounds_module, "_UNACCOUNTED", np.inf)),
    **{f"error through {name}": Removal(pair, _zero(PROPAGATED, name, _nothing)) for name, pair in {
        "multiply": "times", "exponential": "exponential", "tanh": "tanh", "sqrt": "square root", "sine": "sine",
        "maximum": "maximum", "divide": "over", "add": "add", "logistic": "logistic", "log": "logarithm"}.items()},
}


@pytest.mark.parametrize("name", REMOVALS)
def test_every_term_of_the_bound_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the term some element differs by more than what is left of the bound."""
    removal = REMOVALS[name]
    pair = PAIRS[removal.pair]
    assert measured(*pair, scale=removal.scale).held
    removal.remove(monkeypatch)
    assert not measured(*pair, scale=removal.scale).held


def test_what_has_no_bound_says_why() -> None:
    """Ops without a rule, infinities and decisions."""
    sort = ('%y = "stablehlo.sort"(%s) <{dimension = 0 : i64}> ({\n^bb0(%l: tensor<f32>, %r: tensor<f32>):\n'
            " %p = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            " stablehlo.return %p : tensor<i1> }) : (tensor<4096xf32>) -> tensor<4096xf32>")
    found = measured(*(function(then(each, sort)) for each in (LEFT, RIGHT)))
    assert np.isinf(found.most).all() and found.reason.startswith("sort reads a value that differs")
    overflow = measured(*PAIRS["multiply"], scale=1e18)
    assert np.isinf(overflow.most).any() and "overflow" in overflow.reason
    branch = ("%i = stablehlo.slice %s [0:1] : (tensor<4096xf32>) -> tensor<1xf32>\n"
              "%j = stablehlo.reshape %i : (tensor<1xf32>) -> tensor<f32>\n"
              "%p = stablehlo.compare GT, %j, %j : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
              '%y = "stablehlo.if"(%p) ({ stablehlo.return %a : tensor<4096xf32> }, '
              "{ stablehlo.return %b : tensor<4096xf32> }) : (tensor<i1>) -> tensor<4096xf32>")
    with pytest.raises(NoBound, match="if is decided by a value that differs"):
        measured(*(function(then(each, branch)) for each in (LEFT, RIGHT)))


def test_a_compiled_program_is_bounded_from_its_inputs() -> None:
    """Nothing counts as computed alike, so that equal programs have room too."""
    found = measured(*PAIRS["add"], arithmetic=COMPILED)
    assert found.held and (found.most > 0).all()
    same = measured(PAIRS["add"][0], PAIRS["add"][0], arithmetic=COMPILED)
    assert (same.most > 0).all() and not measured(PAIRS["add"][0], PAIRS["add"][0]).most.any()
    assert replace(INTERPRETER, repeats=False) != INTERPRETER
