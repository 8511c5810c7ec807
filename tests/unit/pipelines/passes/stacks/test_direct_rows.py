"""Rows of stacks are taken from where they are made only where an op moves whole rows, in their order."""

from __future__ import annotations

import pytest

from hlorewrite.ir.edit import Editor
from hlorewrite.ir.load import parse
from hlorewrite.ir.regions import Loop
from hlorewrite.ir.view import View
from hlorewrite.pipelines.passes.split_stages.stacks.direct_rows import make_rows_direct

MODULE = """
func.func public @main(%a: tensor<4x6xf32>, %b: tensor<2x6xf32>, %n: tensor<i32>) -> TYPE {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %init = stablehlo.constant dense<0.0> : TYPE
  %r:2 = stablehlo.while(%i = %zero, %x = %init) : tensor<i32>, TYPE
  cond {
    %end = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %m = stablehlo.multiply %a, %a : tensor<4x6xf32>
    OPS
    stablehlo.return %next, %out : tensor<i32>, TYPE
  }
  return %r#1 : TYPE
}
"""
JOINED = """%j = stablehlo.concatenate %m, %b, dim = 0 : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>
    """


def body_of(ops: str, type_: str) -> tuple[str, str]:
    """The text of a module before and after."""
    module = parse(MODULE.replace("OPS", ops).replace("TYPE", type_), name="rows")
    before = module.text()
    view = View(module)
    loop, = view.ops("stablehlo.while")
    make_rows_direct(Editor(view), Loop(loop).body)
    module.mlir.operation.verify()
    return before, module.text()


@pytest.mark.parametrize(("ops", "type_", "expected"), [
    (JOINED + "%out = stablehlo.slice %j [4:6, 0:6] : (tensor<6x6xf32>) -> tensor<2x6xf32>", "tensor<2x6xf32>",
     "stablehlo.return %1, %arg1"),
    (JOINED + "%out = stablehlo.slice %j [1:3, 0:6] : (tensor<6x6xf32>) -> tensor<2x6xf32>", "tensor<2x6xf32>",
     "stablehlo.slice %2 [1:3, 0:6] : (tensor<4x6xf32>)"),
    ("%s = stablehlo.reshape %m : (tensor<4x6xf32>) -> tensor<2x2x6xf32>\n"
     "%out = stablehlo.slice %s [1:2, 0:2, 0:6] : (tensor<2x2x6xf32>) -> tensor<1x2x6xf32>", "tensor<1x2x6xf32>",
     "stablehlo.slice %2 [2:4, 0:6]"),
    (JOINED + "%far = stablehlo.constant dense<9> : tensor<i32>\n"  # clamped to row 4
     "%out = stablehlo.dynamic_slice %j, %far, %zero, sizes = [2, 6] : "
     "(tensor<6x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x6xf32>", "tensor<2x6xf32>", "stablehlo.return %1, %arg1"),
], ids=["one operand", "some rows", "several rows at once", "clamped"])
def test_rows_are_taken_from_where_they_are_made(ops, type_, expected):
    before, after = body_of(ops, type_)
    assert before != after and expected in after, after


@pytest.mark.parametrize(("ops", "type_"), [
    (JOINED + "%out = stablehlo.slice %j [4:6, 0:3] : (tensor<6x6xf32>) -> tensor<2x3xf32>", "tensor<2x3xf32>"),
    (JOINED + "%out = stablehlo.slice %j [0:6:2, 0:6] : (tensor<6x6xf32>) -> tensor<3x6xf32>", "tensor<3x6xf32>"),
    (JOINED + "%out = stablehlo.dynamic_slice %j, %n, %zero, sizes = [2, 6] : "
     "(tensor<6x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x6xf32>", "tensor<2x6xf32>"),
    ("%j = stablehlo.concatenate %m, %m, dim = 1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>\n"
     "%out = stablehlo.slice %j [0:2, 0:12] : (tensor<4x12xf32>) -> tensor<2x12xf32>", "tensor<2x12xf32>"),
    ("%s = stablehlo.broadcast_in_dim %m, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>\n"
     "%out = stablehlo.slice %s [0:3, 0:4] : (tensor<6x4xf32>) -> tensor<3x4xf32>", "tensor<3x4xf32>"),
    ("%s = stablehlo.broadcast_in_dim %m, dims = [1, 2] : (tensor<4x6xf32>) -> tensor<3x4x6xf32>\n"
     "%out = stablehlo.slice %s [0:1, 0:4, 0:6] : (tensor<3x4x6xf32>) -> tensor<1x4x6xf32>", "tensor<1x4x6xf32>"),
    ("%u = stablehlo.dynamic_update_slice %m, %b, %zero, %zero : "
     "(tensor<4x6xf32>, tensor<2x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>\n"
     "%out = stablehlo.slice %u [0:2, 0:6] : (tensor<4x6xf32>) -> tensor<2x6xf32>", "tensor<2x6xf32>"),
], ids=["other dimensions", "strides", "any row", "joined otherwise", "transposed", "repeated", "written in part"])
def test_what_is_more_than_whole_rows_stays(ops, type_):
    before, after = body_of(ops, type_)
    assert before == after


@pytest.mark.parametrize("ops", [
    "%p = stablehlo.constant dense<300> : tensor<i32>\n%at = stablehlo.convert %p : (tensor<i32>) -> tensor<ui8>\n",
    "%p = stablehlo.constant dense<200> : tensor<ui8>\n%at = stablehlo.add %p, %p : tensor<ui8>\n",
], ids=["a convert to fewer bits", "a sum that goes on at the other end"])
def test_a_row_whose_number_does_not_fit_its_type_is_not_computed(ops: str):
    ops = JOINED + ops + ("%rest = stablehlo.constant dense<0> : tensor<ui8>\n"
                          "%out = stablehlo.dynamic_slice %j, %at, %rest, sizes = [1, 6] : "
                          "(tensor<6x6xf32>, tensor<ui8>, tensor<ui8>) -> tensor<1x6xf32>")
    before, after = body_of(ops, "tensor<1x6xf32>")
    assert after == before
