"""Every legality condition of the linearity facts is needed: without it, some program computes something else.

``test_conditions.py`` does the same for the conditions written in Python.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from hlorewrite.checks.reference.check import compare
from hlorewrite.checks.reference.inputs import random_inputs
from hlorewrite.checks.reference.program import prepare
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.facts import CompiledFact, Facts
from hlorewrite.rules.library import shipped_facts

FLOATS, INTS, BYTES, TRUTHS, BFLOATS = (f"tensor<4x{e}>" for e in ("f32", "i32", "i8", "i1", "bf16"))
SQUARE = "tensor<4x4xf32>"
IDENTITY = {"add": "0.0", "maximum": "0xFF800000", "minimum": "0x7F800000"}
VARYING_INDEX = "        %k = stablehlo.minimum %pid, %i1 : tensor<i32>\n"
INDICES = ("        %kk = stablehlo.broadcast_in_dim %pid, dims = [] : (tensor<i32>) -> tensor<4xi32>\n"
           "        %ii = stablehlo.iota dim = 0 : tensor<4xi32>\n"
           "        %k = stablehlo.multiply %kk, %ii : tensor<4xi32>\n")


@dataclass(frozen=True)
class Instance:
    """A loop that accumulates ``f(AR(x))``, where the condition under test does not hold for ``f``.

    Attributes:
      body: lines that compute ``%f`` from ``%g``, the reduced value.
      kind: the reduction, also of the accumulation.
      before: lines before the loop.
      operand: what is reduced.
      type: the type of the reduced value.
      out: the type of ``%f``.
    """

    body: str
    kind: str = "add"
    before: str = ""
    operand: str = "%s"
    type: str = FLOATS
    out: str = ""

    def text(self, make_region: Callable[..., str]) -> str:
        """The module."""
        out = self.out or self.type
        element = out.partition("x")[2].rstrip(">")
        zero = IDENTITY.get(self.kind, "0.0") if "f" in element else {
            "and": "true" if element == "i1" else "-1", "or": "false" if element == "i1" else "0",
            "maximum": "-128"}.get(self.kind, "0")
        return make_region(
            f"      %init = stablehlo.constant dense<{zero}> : {out}\n{self.before}"
            f"      %l = LOOP 5 (%acc = %init : {out}) {{\n"
            f"        %g = AR<{self.kind}>({self.operand}) : {self.type}\n{self.body}"
            f"        %new = stablehlo.{self.kind} %acc, %f : {out}\n      }} yield %new\n", "%l#1", kind=out)


def op(text: str, types: str = FLOATS) -> str:
    """One line that defines ``%f``."""
    return f"        %f = stablehlo.{text} : {types}\n"


# Numbers per device that make narrow types overflow or round: 100 and -100 (or 1000.3 and -1000.2) and the like.
BYTES_APART = ("      %p8 = stablehlo.convert %pid : (tensor<i32>) -> tensor<i8>\n"
               "      %pv = stablehlo.broadcast_in_dim %p8, dims = [] : (tensor<i8>) -> tensor<4xi8>\n"
               "      %c200 = stablehlo.constant dense<-100> : tensor<4xi8>\n"
               "      %c100 = stablehlo.constant dense<100> : tensor<4xi8>\n"
               "      %far = stablehlo.multiply %pv, %c200 : tensor<4xi8>\n"
               "      %x = stablehlo.add %far, %c100 : tensor<4xi8>\n")
INTS_APART = ("      %pv = stablehlo.broadcast_in_dim %pid, dims = [] : (tensor<i32>) -> tensor<4xi32>\n"
              "      %c200 = stablehlo.constant dense<200> : tensor<4xi32>\n"
              "      %x = stablehlo.multiply %pv, %c200 : tensor<4xi32>\n")
CANCELLING = ("      %c1000 = stablehlo.constant dense<1000.0> : tensor<4xf32>\n"
              "      %minus = stablehlo.negate %c1000 : tensor<4xf32>\n"
              "      %big = stablehlo.select %first, %c1000, %minus : tensor<i1>, tensor<4xf32>\n"
              "      %x = stablehlo.add %big, %s : tensor<4xf32>\n")
ODD = ("      %pv = stablehlo.broadcast_in_dim %pid, dims = [] : (tensor<i32>) -> tensor<4xi32>\n"
       "      %c1 = stablehlo.constant dense<1> : tensor<4xi32>\n"
       "      %c2 = stablehlo.constant dense<2> : tensor<4xi32>\n"
       "      %twice = stablehlo.multiply %pv, %c2 : tensor<4xi32>\n"
       "      %x = stablehlo.add %twice, %c1 : tensor<4xi32>\n")
DIFFERENT = "        %k = stablehlo.select %first, %one, %zero : tensor<i1>, tensor<4xf32>\n"
MASK = "        %k = stablehlo.broadcast_in_dim %first, dims = [] : (tensor<i1>) -> tensor<4xi1>\n"
TRUTH = ("      %x = stablehlo.compare GT, %s, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>\n")
DOT = "precision = [DEFAULT, DEFAULT]"


def matrix(source: str) -> str:
    """A matrix whose rows are a vector."""
    return f"        %m = stablehlo.broadcast_in_dim {source}, dims = [1] : ({FLOATS}) -> {SQUARE}\n"


def convolution(left: str, right: str, left_type: str, right_type: str, out: str) -> str:
    """A product of a row and a matrix, as a convolution without a window."""
    return ("stablehlo.convolution(" + left + ", " + right + ") dim_numbers = [b, f]x[i, o]->[b, f], window = {} "
            "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
            f"({left_type}, {right_type}) -> {out}\n")


def to_row(source: str, name: str) -> str:
    """A vector as a matrix of one row."""
    return f"        {name} = stablehlo.reshape {source} : ({FLOATS}) -> tensor<1x4xf32>\n"


def scatter(kind: str) -> str:
    """An update of zeros at indices that differ between devices."""
    return INDICES + (
        f'        %f = "stablehlo.scatter"(%zero, %k, %g) <{{scatter_dimension_numbers = #stablehlo.scatter<'
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
        "        ^bb0(%old: tensor<f32>, %fresh: tensor<f32>):\n"
        f"          %w = stablehlo.{kind} %old, %fresh : tensor<f32>\n          stablehlo.return %w : tensor<f32>\n"
        f"        }}) : ({FLOATS}, {INTS}, {FLOATS}) -> {FLOATS}\n")


ROW, BROW = "tensor<1x4xf32>", "tensor<1x4xbf16>"
WIDEN = f"        %f = stablehlo.convert %h : ({BFLOATS}) -> {FLOATS}\n"
WIDEN_ROW = (f"        %hv = stablehlo.reshape %h : ({BROW}) -> {BFLOATS}\n"
             f"        %f = stablehlo.convert %hv : ({BFLOATS}) -> {FLOATS}\n")
UNROW = f"        %f = stablehlo.reshape %h : ({ROW}) -> {FLOATS}\n"
EYE = ("        %ri = stablehlo.iota dim = 0 : tensor<4x4xi32>\n"
       "        %ci = stablehlo.iota dim = 1 : tensor<4x4xi32>\n"
       "        %eq = stablehlo.compare EQ, %ri, %ci : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>\n"
       f"        %m = stablehlo.convert %eq : (tensor<4x4xi1>) -> {SQUARE}\n")

INSTANCES: dict[tuple[str, str], Instance] = {
    ("add-uniform-to-extremum", "uniform(%k)"): Instance(DIFFERENT + op("add %g, %k"), "maximum"),
    ("add-uniform-to-extremum", "has_infinity(%a)"): Instance(
        op("add %g, %c100", BYTES), "maximum", BYTES_APART, "%x", BYTES),
    ("multiply-by-uniform", "uniform(%k)"): Instance(op("multiply %g, %s")),
    ("divide-by-uniform", "floating(%a)"): Instance(op("divide %g, %c2", INTS), "add", ODD, "%x", INTS),
    ("divide-by-uniform", "uniform(%k)"): Instance(op("divide %g, %s")),
    ("convert", "sum_keeps_value(%r, %a)"): Instance(op("convert %g", f"({BYTES}) -> {INTS}"), "add", BYTES_APART,
                                                        "%c100", BYTES, INTS),
    ("convert-extremum", "monotone_convert(%r, %a)"): Instance(op("convert %g", f"({INTS}) -> {BYTES}"), "maximum",
                                                           INTS_APART, "%x", INTS, BYTES),
    ("maximum-of-minimum", "uniform(%k)"): Instance(DIFFERENT + op("maximum %g, %k"), "minimum"),
    ("minimum-of-maximum", "uniform(%k)"): Instance(DIFFERENT + op("minimum %g, %k"), "maximum"),
    ("clamp", "uniform(%low)"): Instance(DIFFERENT + op("clamp %k, %g, %one"), "maximum"),
    ("clamp", "uniform(%high)"): Instance(DIFFERENT + op("clamp %zero, %g, %k"), "maximum"),
    ("and-of-disjunction", "uniform(%k)"): Instance(MASK + op("and %g, %k", TRUTHS), "or", TRUTH, "%x", TRUTHS),
    ("or-of-conjunction", "uniform(%k)"): Instance(MASK + op("or %g, %k", TRUTHS), "and", TRUTH, "%x", TRUTHS),
    ("pad-with-identity", "is_identity(%padding)"): Instance(
        "        %one0 = stablehlo.constant dense<1.0> : tensor<f32>\n"
        "        %part = stablehlo.slice %g [1:3] : (tensor<4xf32>) -> tensor<2xf32>\n"
        + op("pad %part, %one0, low = [1], high = [1], interior = [0]", f"(tensor<2xf32>, tensor<f32>) -> {FLOATS}")),
    ("dynamic-slice", "uniform(...%indices)"): Instance(
        VARYING_INDEX + "        %part = stablehlo.dynamic_slice %g, %k, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> "
        "tensor<2xf32>\n" + op("concatenate %part, %part, dim = 0", f"(tensor<2xf32>, tensor<2xf32>) -> {FLOATS}")),
    ("dynamic-update-slice", "uniform(...%indices)"): Instance(
        VARYING_INDEX + "        %part = stablehlo.slice %g [1:3] : (tensor<4xf32>) -> tensor<2xf32>\n"
        + op("dynamic_update_slice %zero, %part, %k", f"({FLOATS}, tensor<2xf32>, tensor<i32>) -> {FLOATS}")),
    ("gather", "uniform(%indices)"): Instance(
        INDICES + '        %f = "stablehlo.gather"(%g, %k) <{dimension_numbers = #stablehlo.gather<'
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : "
        f"({FLOATS}, {INTS}) -> {FLOATS}\n"),
    ("select", "uniform(%condition)"): Instance(op("select %first, %g, %zero", f"tensor<i1>, {FLOATS}")),
    ("reduce-sum", "is_identity(%init)"): Instance(
        "        %one0 = stablehlo.constant dense<1.0> : tensor<f32>\n"
        "        %t = stablehlo.reduce(%g init: %one0) applies stablehlo.add across dimensions = [0] : "
        f"({FLOATS}, tensor<f32>) -> tensor<f32>\n"
        + op("broadcast_in_dim %t, dims = []", f"(tensor<f32>) -> {FLOATS}")),
    ("scatter-sum", "uniform(%indices)"): Instance(scatter("add")),
    ("scatter-max", "uniform(%indices)"): Instance(scatter("maximum"), "maximum"),
    ("scatter-min", "uniform(%indices)"): Instance(scatter("minimum"), "minimum"),
    ("dot-general-left", "uniform(%m)"): Instance(
        matrix("%s") + op(f"dot_general %g, %m, contracting_dims = [0] x [0], {DOT}",
                          f"({FLOATS}, {SQUARE}) -> {FLOATS}")),
    ("dot-general-right", "uniform(%m)"): Instance(
        matrix("%s") + op(f"dot_general %m, %g, contracting_dims = [1] x [0], {DOT}",
                          f"({SQUARE}, {FLOATS}) -> {FLOATS}")),
    ("dot-general-left", "sum_keeps_value(%r, %a)"): Instance(
        EYE + f"        %h = stablehlo.dot_general %g, %m, contracting_dims = [0] x [0], {DOT} : "
        f"({FLOATS}, {SQUARE}) -> {BFLOATS}\n" + WIDEN, "add", CANCELLING, "%x"),
    ("dot-general-right", "sum_keeps_value(%r, %a)"): Instance(
        EYE + f"        %h = stablehlo.dot_general %m, %g, contracting_dims = [1] x [0], {DOT} : "
        f"({SQUARE}, {FLOATS}) -> {BFLOATS}\n" + WIDEN, "add", CANCELLING, "%x"),
    ("convolution-input", "uniform(%m)"): Instance(
        matrix("%s") + to_row("%g", "%row") + "        %h = " + convolution("%row", "%m", ROW, SQUARE, ROW) + UNROW),
    ("convolution-kernel", "uniform(%m)"): Instance(
        to_row("%s", "%row") + matrix("%g") + "        %h = " + convolution("%row", "%m", ROW, SQUARE, ROW) + UNROW),
    ("convolution-input", "sum_keeps_value(%r, %a)"): Instance(
        EYE + to_row("%g", "%row") + "        %h = " + convolution("%row", "%m", ROW, SQUARE, BROW) + WIDEN_ROW, "add",
        CANCELLING, "%x"),
    ("convolution-kernel", "sum_keeps_value(%r, %a)"): Instance(
        "        %e = stablehlo.constant dense<[[0.0, 0.0, 1.0, 0.0]]> : tensor<1x4xf32>\n" + matrix("%g")
        + "        %h = " + convolution("%e", "%m", ROW, SQUARE, BROW) + WIDEN_ROW, "add", CANCELLING, "%x"),
    ("triangular-solve", "uniform(%m)"): Instance(
        "        %d = stablehlo.add %s, %c7 : tensor<4xf32>\n"
        f"        %m = stablehlo.broadcast_in_dim %d, dims = [1] : ({FLOATS}) -> {SQUARE}\n"
        f"        %col = stablehlo.reshape %g : ({FLOATS}) -> tensor<4x1xf32>\n"
        '        %h = "stablehlo.triangular_solve"(%m, %col) <{left_side = true, lower = true, unit_diagonal = false, '
        f"transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}> : ({SQUARE}, tensor<4x1xf32>) -> tensor<4x1xf32>\n"
        + op("reshape %h", f"(tensor<4x1xf32>) -> {FLOATS}"), "add",
        "      %c7 = stablehlo.constant dense<7.0> : tensor<4xf32>\n"),
}


def outcome(text: str) -> str:
    """``unchanged``, ``equal`` or ``wrong`` after comm-shift."""
    before = parse(text)
    after = before.clone()
    try:
        run_passes(after, parse_pipeline("comm-shift"), PassContext())
    except HlorewriteError:
        return "wrong"
    if str(after.mlir) == str(before.mlir):
        return "unchanged"
    original, program = prepare(before, "main"), prepare(after, "main")
    for seed in range(3):
        inputs = random_inputs(original, seed)
        expected = original.run(inputs)
        assert not expected.diverged
        assert all(np.isfinite(v.astype(np.float64)).all() for row in expected.outputs for v in row)
        if not compare(expected, program.run(inputs), "main", 1e-4).equal:
            return "wrong"
    return "equal"


def is_proved(text: str) -> bool:
    """Whether the validator, with all facts whole, calls what comm-shift makes proved."""
    before = parse(text)
    after = before.clone()
    try:
        run_passes(after, parse_pipeline("comm-shift"), PassContext())
    except HlorewriteError:
        return False
    return isinstance(validate(before, after), Proved)


def all_facts() -> list[CompiledFact]:
    """Every shipped fact once."""
    facts = shipped_facts()
    names = dict.fromkeys(name for fact in facts._by_op.values() for each in fact for name in each.names)
    return list(dict.fromkeys(fact for name in names for fact in facts.for_op(name)))


def test_every_condition_has_an_instance() -> None:
    """A condition added to a fact needs an instance here, and an instance needs its condition."""
    assert {(fact.name, check.text) for fact in all_facts() for check in fact.checks} == set(INSTANCES)


@pytest.mark.parametrize("key", INSTANCES, ids=" ".join)
def test_condition_is_needed(key: tuple[str, str], make_region: Callable[..., str],
                             monkeypatch: pytest.MonkeyPatch) -> None:
    """With the condition, the values stay; without it, they do not."""
    text = INSTANCES[key].text(make_region)
    assert outcome(text) in ("unchanged", "equal") and is_proved(text)
    weakened = [dataclasses.replace(fact, checks=tuple(c for c in fact.checks if c.text != key[1]))
                if fact.name == key[0] else fact for fact in all_facts()]
    monkeypatch.setattr("hlorewrite.passes.comm_shift.comm_shift.shipped_facts", lambda: Facts(weakened))
    assert outcome(text) == "wrong" and not is_proved(text)


KINDS = {"sum": "add", "max": "maximum", "min": "minimum", "product": "multiply"}


@pytest.mark.parametrize("fact, kind, line", [
    ("add", "max", "add %g, %h"), ("subtract", "max", "subtract %h, %g"), ("negate", "max", "negate %g"),
    ("multiply-by-uniform", "max", "multiply %g, %minus"), ("divide-by-uniform", "min", "divide %g, %minus"),
    ("maximum", "sum", "maximum %g, %zero"), ("minimum", "sum", "minimum %g, %zero"),
    ("clamp", "sum", "clamp %zero, %g, %one"), ("multiply-products", "sum", "multiply %g, %h"),
])
def test_kind_is_needed(fact: str, kind: str, line: str, make_region: Callable[..., str],
                        monkeypatch: pytest.MonkeyPatch) -> None:
    """A fact holds for the reductions it names, and not for others."""
    before = ("      %minus = stablehlo.constant dense<-2.0> : tensor<4xf32>\n"
              "      %h0 = stablehlo.subtract %one, %s : tensor<4xf32>\n")
    second = f"        %h = AR<{KINDS[kind]}>(%h0) : {FLOATS}\n"
    text = Instance(second + op(line), KINDS[kind], before).text(make_region)
    assert outcome(text) in ("unchanged", "equal") and is_proved(text)
    weakened = [dataclasses.replace(each, kinds=frozenset({kind})) for each in all_facts() if each.name == fact]
    others = [each for each in all_facts() if each.name != fact and not (
        set(each.names) & set(weakened[0].names) and kind in each.kinds)]
    monkeypatch.setattr("hlorewrite.passes.comm_shift.comm_shift.shipped_facts", lambda: Facts([*weakened, *others]))
    assert outcome(text) == "wrong" and not is_proved(text)
