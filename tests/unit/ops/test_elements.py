"""Where elements come from and what simple ops compute, against the interpreter of StableHLO."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

from functools import partial
from itertools import permutations

import numpy as np
import pytest
from generators.op_samples import arrays, sample

from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.rounding.eval_op import eval_op
from hlorewrite.ir.types import integer_range
from hlorewrite.ops.attributes import comparison_direction, integer, ints, shape_of
from hlorewrite.ops.elements import MOVERS, iota, moved
from hlorewrite.ops.elementwise import FUNCTIONS, INTEGER_OPS, of_integers
from hlorewrite.ops.table import ELEMENTWISE, MOVES

A, INDEX, F = "tensor<4x2x6xf32>", "tensor<i32>", "tensor<f32>"
STARTS = f"{INDEX}, {INDEX}, {INDEX}"
MOVED = [
    f"reshape %a : ({A}) -> tensor<8x6xf32>", f"reshape %a : ({A}) -> tensor<1x48x1xf32>", f"reshape %a : ({F}) -> tensor<1x1xf32>",
    f"reshape %a : (tensor<1xf32>) -> {F}", "reshape %a : (tensor<0x3xf32>) -> tensor<5x0xf32>",
    *(f"transpose %a, dims = {list(order)} : ({A}) -> tensor<{'x'.join(str((4, 2, 6)[d]) for d in order)}xf32>"
      for order in permutations(range(3))), f"transpose %a, dims = [] : ({F}) -> {F}", "transpose %a, dims = [1, 0] : (tensor<0x3xf32>) -> tensor<3x0xf32>",
    f"reverse %a, dims = [] : {A}", f"reverse %a, dims = [0, 2] : {A}", "reverse %a, dims = [1] : tensor<3x0xf32>",
    f"slice %a [0:4, 1:2, 1:6:2] : ({A}) -> tensor<4x1x3xf32>", f"slice %a [2:2, 0:2, 0:6:5] : ({A}) -> tensor<0x2x2xf32>",
    f"slice %a [] : ({F}) -> {F}",
    f"concatenate %a, dim = 0 : ({A}) -> {A}", f"concatenate %a, %b, %c, dim = 1 : ({A}, tensor<4x0x6xf32>, tensor<4x1x6xf32>) -> tensor<4x3x6xf32>",
    f"pad %a, %b, low = [1, 0, 2], high = [0, 1, 0], interior = [0, 2, 1] : ({A}, {F}) -> tensor<5x5x13xf32>",
    f"pad %a, %b, low = [-1, -3, 0], high = [-2, 3, -7], interior = [0, 1, 1] : ({A}, {F}) -> tensor<1x3x4xf32>",
    f"pad %a, %b, low = [2], high = [1], interior = [3] : (tensor<0xf32>, {F}) -> tensor<3xf32>", f"pad %a, %b, low = [], high = [], interior = [] : ({F}, {F}) -> {F}",
    f"pad %a, %b, low = [-4], high = [2], interior = [0] : (tensor<3xf32>, {F}) -> tensor<1xf32>",
    f"select %a, %b, %c : (tensor<i1>, {A}, {A}) -> {A}", f"select %a, %b, %c : (tensor<4x2x6xi1>, {A}, {A}) -> {A}",
    f"select %a, %b, %c : (tensor<i1>, {F}, {F}) -> {F}",
    f"dynamic_slice %a, %b, %c, %d, sizes = [4, 1, 3] : ({A}, {STARTS}) -> tensor<4x1x3xf32>", f"dynamic_slice %a, sizes = [] : ({F}) -> {F}",
    f"dynamic_slice %a, %b, %c, %d, sizes = [1, 0, 6] : ({A}, {STARTS}) -> tensor<1x0x6xf32>",
    f"dynamic_update_slice %a, %b, %c, %d, %e : ({A}, tensor<4x1x3xf32>, {STARTS}) -> {A}",
    f"dynamic_update_slice %a, %b, %c, %d, %e : ({A}, tensor<0x1x3xf32>, {STARTS}) -> {A}", f"dynamic_update_slice %a, %b : ({F}, {F}) -> {F}",
]
for rank in (0, 1, 2, 3):
    for order in permutations(range(3), rank):
        for size in (1, 2):  # a first dimension of size one is repeated
            source = [size, 3, 4][:rank]
            shape = [5 if d not in order or source[order.index(d)] == 1 else source[order.index(d)] for d in range(3)]
            MOVED.append(f"broadcast_in_dim %a, dims = {list(order)} : (tensor<{''.join(f'{each}x' for each in source)}f32>) -> "
                         f"tensor<{'x'.join(map(str, shape))}xf32>")


@pytest.mark.parametrize("line", MOVED)
def test_elements_move_as_the_interpreter_moves_them(line: str) -> None:
    _module, op = sample(line)
    shape, name = shape_of(op.results[0]), op.name.removeprefix("stablehlo.")
    several = [arrays(op, seed) for seed in range(3)]
    expected = [eval_op(op, [(each, value.type) for each, value in zip(given, op.operands, strict=True)])[0] for given in several]
    for given, result in zip(several, expected, strict=True):
        made = moved(name, partial(ints, op), shape, given)
        assert made.shape == shape and np.array_equal(made, result)
    at_once = moved(name, partial(ints, op), shape, [np.stack(each) for each in zip(*several, strict=True)], copies=1)
    assert at_once.shape == (3, *shape) and np.array_equal(at_once, np.stack(expected))


def test_each_op_that_moves_elements_has_one_mover() -> None:
    assert {f"stablehlo.{name}" for name in MOVERS} == MOVES | {"stablehlo.select"}
    assert {line.split()[0] for line in MOVED} == set(MOVERS)
    assert {f"stablehlo.{name}" for name in (*FUNCTIONS, *INTEGER_OPS)} <= ELEMENTWISE


@pytest.mark.parametrize("line", ["iota dim = 0 : tensor<3x2xi32>", "iota dim = 1 : tensor<3x2xf32>", "iota dim = 1 : tensor<2x3x1xui8>",
                                  "iota dim = 0 : tensor<0xi64>"])
def test_iota(line: str) -> None:
    _module, op = sample(line)
    made = iota(shape_of(op.results[0]), integer(op, "iota_dimension"), np.dtype(dtype_of(op.results[0].type)))
    [expected] = eval_op(op, [])
    assert np.array_equal(made, expected) and made.dtype == expected.dtype


def lines_of(name: str, element: str) -> str:
    """One op of integers, with scalar operands where it takes them."""
    kind, scalar = f"tensor<7x7x{element}>", f"tensor<{element}>"
    return {"compare": f"compare LT, %a, %b : ({kind}, {kind}) -> tensor<7x7xi1>", "clamp": f"clamp %a, %b, %c : ({scalar}, {kind}, {scalar}) -> {kind}",
            "select": f"select %a, %b, %c : (tensor<i1>, {kind}, {kind}) -> {kind}", "convert": f"convert %a : ({kind}) -> tensor<7x7xi8>",
            **dict.fromkeys(("not", "negate", "sign", "abs"), f"{name} %a : {kind}")}.get(name, f"{name} %a, %b : {kind}")


NOT_OF = {"i1": ("subtract", "negate", "sign", "abs", "divide", "remainder"), "ui8": ("sign", "abs", "negate")}
"""Ops that the dialect does not have for a type."""


@pytest.mark.parametrize(("name", "element"), [(name, element) for name in sorted(INTEGER_OPS)
                                               for element in ("i8", "i32", "ui8", "i1")
                                               if name not in NOT_OF.get(element, ())])
def test_integers_as_the_interpreter_computes_them(name: str, element: str) -> None:
    """Every pair of small numbers and the ends of the range; what is not computed is no number the interpreter gives."""
    _module, op = sample(lines_of(name, element))
    range_ = integer_range(op.operands[-1].type)
    few = sorted({range_[0], range_[-1], *(n for n in (-7, -1, 0, 1, 3, 7) if n in range_)})
    few = (few * 7)[:7]
    grid = np.meshgrid(few, few)
    given = []
    for number, value in enumerate(op.operands):
        dtype = np.dtype(dtype_of(value.type))
        whole = np.array(grid[number % 2]).astype(dtype) if shape_of(value) else np.array([1, 0, 3][number]).astype(dtype)
        if name in ("divide", "remainder") and number:
            whole = np.where((whole == 0) | (whole.astype(int) == -1), 2, whole).astype(dtype)
        given.append(whole)
    [expected] = eval_op(op, [(each, value.type) for each, value in zip(given, op.operands, strict=True)])
    made = of_integers(name, given, expected.dtype, comparison_direction(op) if name == "compare" else "")
    assert made is not None and np.array_equal(made, expected) and made.dtype == expected.dtype


@pytest.mark.parametrize("name", ["divide", "remainder"])
@pytest.mark.parametrize("pair", [(1, 0), (-128, -1)])
def test_divisions_of_which_nothing_is_said(name: str, pair: tuple[int, int]) -> None:
    assert of_integers(name, [np.int8([pair[0]]), np.int8([pair[1]])], np.dtype("int8")) is None


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_comparisons(direction: str) -> None:
    _module, op = sample(f"compare {direction}, %a, %b : (tensor<9xi32>, tensor<9xi32>) -> tensor<9xi1>")
    given = [np.repeat(np.int32([-1, 0, 1]), 3), np.tile(np.int32([-1, 0, 1]), 3)]
    [expected] = eval_op(op, [(each, value.type) for each, value in zip(given, op.operands, strict=True)])
    made = of_integers("compare", given, np.dtype(bool), comparison_direction(op))
    assert made is not None and np.array_equal(made, expected)
