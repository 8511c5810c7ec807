"""Products and reductions whose result is wider than their operands are added up in the result's type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.reference.program import prepare
from hlorewrite.ir.load import parse

TYPES: dict[str, Any] = {
    "i4": ml_dtypes.int4, "i8": np.int8, "ui8": np.uint8, "i16": np.int16, "i32": np.int32, "ui32": np.uint32,
    "i64": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn}
PAIRS = (("i8", "i32"), ("i8", "i16"), ("i8", "i8"), ("ui8", "ui32"), ("ui8", "i32"), ("i16", "i32"), ("i16", "i64"),
         ("i4", "i32"), ("i4", "i8"), ("i32", "i8"), ("i8", "f32"), ("f16", "f32"), ("bf16", "f32"), ("f32", "f64"),
         ("f8E4M3FN", "f32"), ("f32", "f16"), ("f32", "bf16"))
CONVOLUTION = ("stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1]} "
               "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}")
DOT = "stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]"
REDUCED = {"reduce": ("dimensions = array<i64: 0>", ""), "reduce_window": ("window_dimensions = array<i64: 4>", "1x")}


def drawn(element: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers over the whole range of an integer type."""
    generator = np.random.default_rng(len(shape))
    if element.lstrip("u").startswith("i"):
        bits = int(element.lstrip("ui"))
        low = 0 if element.startswith("u") else -(2**(bits - 1))
        return generator.integers(low, low + 2**bits, shape).astype(np.int64).astype(TYPES[element])
    return generator.standard_normal(shape).astype(TYPES[element])


def run(text: str, *inputs: np.ndarray) -> np.ndarray:
    return np.asarray(prepare(parse(text)).run([list(inputs)]).outputs[0][0])


def close(actual: np.ndarray, exact: np.ndarray, result: str) -> bool:
    """Equal modulo the width for integers, and to the precision of the result's type for floats."""
    if result.startswith("f") or result == "bf16":
        unit = float(ml_dtypes.finfo(TYPES[result]).eps)
        return np.allclose(actual.astype(np.float64), exact.astype(np.float64), rtol=8 * unit, atol=8 * unit)
    return np.array_equal(actual, exact.astype(np.int64).astype(TYPES[result]))


def wide(array: np.ndarray, element: str) -> np.ndarray:
    return array.astype(np.int64 if element.lstrip("u").startswith("i") else np.float64)


@pytest.mark.parametrize("element, result", PAIRS)
def test_convolutions_and_products(element: str, result: str) -> None:
    x, w = drawn(element, (1, 4, 2)), drawn(element, (2, 2, 3))
    text = (f"func.func @main(%x: tensor<1x4x2x{element}>, %w: tensor<2x2x3x{element}>) -> tensor<1x3x3x{result}> {{ "
            f"%r = {CONVOLUTION} : (tensor<1x4x2x{element}>, tensor<2x2x3x{element}>) -> tensor<1x3x3x{result}> "
            f"return %r : tensor<1x3x3x{result}> }}")
    windows = np.stack([wide(x, element)[0, i:i + 2] for i in range(3)])
    assert close(run(text, x, w)[0], np.einsum("wsi,sio->wo", windows, wide(w, element)), result)
    x, w = drawn(element, (2, 4)), drawn(element, (4, 3))
    text = (f"func.func @main(%x: tensor<2x4x{element}>, %w: tensor<4x3x{element}>) -> tensor<2x3x{result}> {{ "
            f"%r = {DOT} : (tensor<2x4x{element}>, tensor<4x3x{element}>) -> tensor<2x3x{result}> "
            f"return %r : tensor<2x3x{result}> }}")
    assert close(run(text, x, w), wide(x, element) @ wide(w, element), result)


@pytest.mark.parametrize("op", REDUCED)
@pytest.mark.parametrize("element, result", [("i8", "i32"), ("ui8", "ui32"), ("i8", "i8"), ("i16", "i64"),
                                             ("f16", "f32"), ("bf16", "f32"), ("f8E4M3FN", "f16")])
def test_reductions(op: str, element: str, result: str) -> None:
    """The region says in which type."""
    attributes, shape = REDUCED[op]
    scalar, x = f"tensor<{result}>", drawn(element, (4,))
    text = (f"func.func @main(%x: tensor<4x{element}>, %z: tensor<{element}>) -> tensor<{shape}{result}> {{ "
            f'%r = "stablehlo.{op}"(%x, %z) ({{^bb0(%p: {scalar}, %q: {scalar}): %s = stablehlo.add %p, %q : {scalar} '
            f"stablehlo.return %s : {scalar}}}) {{{attributes}}} : (tensor<4x{element}>, tensor<{element}>) -> "
            f"tensor<{shape}{result}> return %r : tensor<{shape}{result}> }}")
    start = np.zeros((), TYPES[element])
    assert close(run(text, x, start).reshape(()), wide(x, element).sum(), result)


def test_a_sum_of_eight_bits_does_not_wrap_around_in_thirty_two() -> None:
    """800, as XLA computes it; a module that wraps around is another one."""
    text = ("func.func @main(%x: tensor<1x2x1xi8>, %w: tensor<2x1x1xi8>) -> tensor<1x1x1xi32> {{ %r = {made} "
            "return %r : tensor<1x1x1xi32> }}")
    types = "(tensor<1x2x1xi8>, tensor<2x1x1xi8>) -> tensor<1x1x1x{}>"
    right = parse(text.format(made=f"{CONVOLUTION} : {types.format('i32')}"))
    wraps = parse(text.format(made="stablehlo.convert %n : (tensor<1x1x1xi8>) -> tensor<1x1x1xi32>").replace(
        "%r =", f"%n = {CONVOLUTION} : {types.format('i8')} %r ="))
    inputs = [np.full((1, 2, 1), 100, np.int8), np.full((2, 1, 1), 4, np.int8)]
    assert prepare(right).run([inputs]).outputs[0][0].item() == 800
    assert check(right, right).equal and not all(check(right, wraps, seed=seed).equal for seed in range(3))


def test_infinite_parts_of_complex_results_leave_the_other_part_alone() -> None:
    text = ("func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xcomplex<f32>> { "
            "%r = stablehlo.complex %a, %b : tensor<2xcomplex<f32>> return %r : tensor<2xcomplex<f32>> }")
    made = run(text, np.array([1, 2], np.float32), np.array([np.inf, 3], np.float32))
    assert made.real.tolist() == [1, 2] and made.imag.tolist() == [np.inf, 3]
