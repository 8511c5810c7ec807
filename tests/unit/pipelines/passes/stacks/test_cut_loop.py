"""A loop that is cut runs as often as before, whatever its counter starts at and counts by."""

from __future__ import annotations

import pytest

from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.load import parse
from hlorewrite.ir.regions import Loop
from hlorewrite.ir.view import View
from hlorewrite.pipelines.passes.split_stages.stacks.cut_loops import cut_loop

MODULE = """
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %start = stablehlo.constant dense<START> : tensor<TYPE>
  %r:2 = stablehlo.while(%i = %start, %c = %x) : tensor<TYPE>, tensor<4xf32>
  cond {
    %end = stablehlo.constant dense<END> : tensor<TYPE>
    %go = stablehlo.compare DIRECTION, %i, %end : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %step = stablehlo.constant dense<STEP> : tensor<TYPE>
    %next = stablehlo.OP %i, %step : tensor<TYPE>
    %y = stablehlo.tanh %c : tensor<4xf32>
    stablehlo.return %next, %y : tensor<TYPE>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
"""


@pytest.mark.parametrize(("type_", "start", "op", "step", "direction", "end"), [
    ("i32", 0, "add", 1, "LT", 6), ("i32", 3, "add", 2, "LT", 15), ("i32", 3, "add", 2, "LE", 13),
    ("i32", 12, "add", -2, "GT", 0), ("ui32", 12, "subtract", 2, "GT", 0), ("ui8", 200, "add", 5, "LT", 230),
], ids=["by one", "by two", "by two, its end too", "down", "down, unsigned", "few bits"])
def test_pieces_run_as_often_as_the_loop(type_: str, start: int, op: str, step: int, direction: str, end: int):
    text = MODULE
    for name, value in (("TYPE", type_), ("START", start), ("OP", op), ("STEP", step), ("DIRECTION", direction),
                        ("END", end)):
        text = text.replace(name, str(value))
    module = parse(text, name="loop")
    view = View(module)
    loop, = view.ops("stablehlo.while")
    assert trip_count(loop) == 6
    pieces = cut_loop(Editor(view), Loop(loop), [(0, 1), (1, 4), (4, 6)])
    module.mlir.operation.verify()
    assert [trip_count(piece) for piece in pieces] == [1, 3, 2]
