"""Convolutions and window reductions: the interpreter's bits, bounds that hold, and orders of sums without values."""

from __future__ import annotations

import numpy as np
import pytest

from hlorewrite.checks.reference.inputs import random_inputs
from hlorewrite.checks.reference.program import prepare
from hlorewrite.checks.reference.rounding.replay import replay
from hlorewrite.checks.reference.rounding.summation_order import summation_orders
from hlorewrite.checks.reference.rounding.units import COMPILED, TENSOR_CORES, FloatFormat
from hlorewrite.ir.load import parse

from .programs import measured


def convolution(x: str, kernel: str, result: str, window: str = "", counts: tuple[int, int] = (1, 1), *,
                numbers: str = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", before: str = "") -> str:
    """A function of an input %a and a kernel %b."""
    body = before or "%x = stablehlo.optimization_barrier %a : T\n%k = stablehlo.optimization_barrier %b : K"
    body = body.replace(": T", f": tensor<{x}>").replace(": K", f": tensor<{kernel}>")
    return (f"func.func @main(%a: tensor<{x}>, %b: tensor<{kernel}>) -> tensor<{result}> {{\n{body}\n"
            f"%y = stablehlo.convolution(%x, %k) dim_numbers = {numbers}, window = {{{window}}} "
            f"{{feature_group_count = {counts[0]} : i64, batch_group_count = {counts[1]} : i64}} : "
            f"(tensor<{x}>, tensor<{kernel}>) -> tensor<{result}>\n return %y : tensor<{result}> }}")


def window(by: str, x: str, result: str, attributes: str, *, start: str = "0.0", before: str = "") -> str:
    """A function of %a and %b."""
    element = x.rsplit("x", 1)[1]
    body = (before or "%x = stablehlo.optimization_barrier %a : T").replace(": T", f": tensor<{x}>")
    return (f"func.func @main(%a: tensor<{x}>, %b: tensor<{x}>) -> tensor<{result}> {{\n{body}\n"
            f"%z = stablehlo.constant dense<{start}> : tensor<{element}>\n"
            f'%y = "stablehlo.reduce_window"(%x, %z) <{{{attributes}}}> ({{\n'
            f"^bb0(%l: tensor<{element}>, %r: tensor<{element}>):\n"
            f"%s = stablehlo.{by} %l, %r : tensor<{element}>\n stablehlo.return %s : tensor<{element}> }}) : "
            f"(tensor<{x}>, tensor<{element}>) -> tensor<{result}>\n return %y : tensor<{result}> }}")


PADDED = "window_dimensions = array<i64: 1, 3>, padding = dense<[[0, 0], [2, 1]]> : tensor<2x2xi64>"
PROGRAMS = {
    "plain": convolution("2x6x5x3xf32", "3x2x3x4xf32", "2x4x4x4xf32"),
    "padded, strided": convolution("2x6x5x3xf32", "3x2x3x4xf32", "2x3x5x4xf32",
                                   "stride = [2, 1], pad = [[1, 1], [0, 1]]"),
    "cropped": convolution("2x6x5x3xf32", "3x2x3x4xf32", "2x3x4x4xf32", "pad = [[-1, 0], [0, 0]]"),
    "dilated": convolution("2x6x5x3xf32", "3x2x3x4xf32", "2x7x7x4xf32",
                           "lhs_dilate = [2, 2], rhs_dilate = [2, 2]"),
    "reversed": convolution("2x6x5x3xf32", "3x2x3x4xf32", "2x4x4x4xf32", "reverse = [true, false]"),
    "features in groups": convolution("2x6x5x6xf32", "3x2x3x4xf32", "2x4x4x4xf32", counts=(2, 1)),
    "batch in groups": convolution("4x6x5x3xf32", "3x2x3x4xf32", "2x4x4x4xf32", counts=(1, 2)),
    "features first": convolution("2x3x6x5xf32", "4x3x3x2xf32", "2x4x4x4xf32",
                                  numbers="[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"),
    "bfloat16": convolution("2x6x5x3xbf16", "3x2x3x4xbf16", "2x4x4x4xbf16"),
    "integers": convolution("2x6x5x3xi32", "3x2x3x4xi32", "2x4x4x4xi32"),
    "no axes": convolution("2x3xf32", "3x4xf32", "2x4xf32", numbers="[b, f]x[i, o]->[b, f]"),
    "sums": window("add", "4x8xf32", "4x9xf32", PADDED),
    "sums from one": window("add", "4x8xf32", "4x9xf32", PADDED, start="1.0"),
    "maxima": window("maximum", "4x8xf32", "2x3xf32", "window_dimensions = array<i64: 2, 3>, window_strides = "
                     "array<i64: 2, 2>", start="0xFF800000"),
    "dilated sums": window("add", "4x8xf32", "4x13xf32", "window_dimensions = array<i64: 1, 2>, base_dilations = "
                           "array<i64: 1, 2>, window_dilations = array<i64: 1, 2>"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_the_interpreter(name: str) -> None:
    """Bit for bit, so terms are added in its order."""
    program = prepare(parse(PROGRAMS[name]), "main")
    inputs = random_inputs(program, 0)
    [[expected]] = program.run(inputs).outputs
    block = program.lowered.body.operations[0].operation.regions[0].blocks[0]
    ops = [op.operation for op in block.operations]
    [op] = [op for op in ops if op.name in ("stablehlo.convolution", "stablehlo.reduce_window")]
    tape, [slot] = replay(program.lowered, inputs[0], [op.results[0]])
    assert not any(step.kind == "opaque" for step in tape.steps)
    found = tape.cells[slot].value
    np.testing.assert_array_equal(np.asarray(found, expected.dtype), expected)


FLIPPED = ("%x = stablehlo.reverse %a, dims = [3] : T\n%k = stablehlo.reverse %b, dims = [2] : K")
REVERSED = "%x = stablehlo.reverse %a, dims = [1] : T"
EIGHT = "window_dimensions = array<i64: 1, 8>, padding = dense<[[0, 0], [{}, {}]]> : tensor<2x2xi64>"
PAIRS = {
    "convolution": (PROGRAMS["plain"], convolution("2x6x5x3xf32", "3x2x3x4xf32", "2x4x4x4xf32", before=FLIPPED)),
    "window": (window("add", "16x64xf32", "16x64xf32", EIGHT.format(7, 0)),
               window("add", "16x64xf32", "16x64xf32", EIGHT.format(0, 7), before=REVERSED)
               .replace(" return %y", "%w = stablehlo.reverse %y, dims = [1] : tensor<16x64xf32>\n return %w")),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("seed", range(4))
def test_other_orders_of_terms_stay_within_the_bound(name: str, seed: int) -> None:
    found = measured(*PAIRS[name], seed=seed)
    assert found.apart.any() and found.held and not found.reason
    assert found.share > 1 / 100


@pytest.mark.parametrize("name", PAIRS)
def test_the_length_of_the_sum_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gamma = FloatFormat.gamma
    monkeypatch.setattr(FloatFormat, "gamma", lambda self, count: gamma(self, min(count, 1)) / 8)
    assert not measured(*PAIRS[name]).held


def test_convolutions_on_gpus_have_no_bound() -> None:
    """A library may choose an algorithm (Winograd 1980) that adds and subtracts more than the terms."""
    found = measured(*PAIRS["convolution"], arithmetic=TENSOR_CORES)
    assert np.isinf(found.most).all()
    assert found.reason.startswith("convolution may be computed by an algorithm other than sums of products")
    assert np.isfinite(measured(*PAIRS["convolution"], arithmetic=COMPILED).most).all()


@pytest.mark.parametrize(("name", "longest"), [("convolution", 18), ("window", 8)])
def test_lengths_of_sums_without_values(name: str, longest: int) -> None:
    before, after = (parse(text) for text in PAIRS[name])
    [order] = summation_orders(before, after).changed
    assert (order.longest_before, order.longest_after, order.ended) == (longest, longest, "")
