"""Where values come from through loops, branches, calls, manual computations and barriers."""

from __future__ import annotations

import pytest

from hlorewrite.ir.load import parse
from hlorewrite.ir.regions import CALL, FUNCTION, MANUAL, Loop, around, called_functions, decision, returned
from hlorewrite.ir.view import View, defining_op, symbol_name
from hlorewrite.util.reachability import postorder, reachable

TEXT = """
sdy.mesh @mesh = <["x"=2]>
func.func private @inner(%x: tensor<f32>) -> tensor<f32> {
  %y = stablehlo.negate %x : tensor<f32>
  return %y : tensor<f32>
}
func.func private @outer(%x: tensor<f32>) -> tensor<f32> {
  %y = func.call @inner(%x) : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
func.func private @unread(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func @main(%a: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
  %m = sdy.manual_computation(%a) in_shardings=[<@mesh, []>] out_shardings=[<@mesh, []>] manual_axes={"x"} (
      %q: tensor<f32>) {
    %c = func.call @outer(%q) : (tensor<f32>) -> tensor<f32>
    sdy.return %c : tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  %b:2 = stablehlo.optimization_barrier %m, %a : tensor<f32>, tensor<f32>
  %i = "stablehlo.if"(%p) ({
    %t = stablehlo.tanh %b#0 : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }, {
    stablehlo.return %a : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  %w:2 = stablehlo.while(%k = %p, %s = %i) : tensor<i1>, tensor<f32>
  cond {
    stablehlo.return %k : tensor<i1>
  } do {
    %n = stablehlo.sine %s : tensor<f32>
    stablehlo.return %k, %n : tensor<i1>, tensor<f32>
  }
  return %w#1 : tensor<f32>
}
"""


@pytest.fixture
def view() -> View:
    return View(parse(TEXT))


def test_a_loop_says_what_it_carries_keeps_and_tests(view: View) -> None:
    (op,) = view.ops("stablehlo.while")
    loop = Loop(op)
    start, following = loop.carried(1)
    assert [defining_op(value).name for value in (start, following)] == ["stablehlo.if", "stablehlo.sine"]  # pyright: ignore
    assert (loop.keeps(0), loop.keeps(1), loop.tests(0), loop.tests(1)) == (True, False, True, False)
    assert decision(op) == loop.predicate


def test_a_result_is_what_each_region_returns(view: View) -> None:
    def makers(name: str, position: int = 0) -> list[str]:
        values = returned(view.ops(name)[0], position, view)
        assert values is not None
        return [op.name if (op := defining_op(value)) is not None else "argument" for value in values]

    assert makers("stablehlo.if") == ["stablehlo.tanh", "argument"]
    assert makers("stablehlo.optimization_barrier") == [MANUAL]
    assert makers("stablehlo.optimization_barrier", 1) == ["argument"]
    assert makers(MANUAL) == [CALL]
    assert makers(CALL) == ["stablehlo.negate"]
    assert returned(view.ops("stablehlo.tanh")[0], 0, view) is None
    assert decision(view.ops("stablehlo.if")[0]) == view.ops("stablehlo.if")[0].operands[0]
    assert decision(view.ops(CALL)[0]) is None


def test_around_goes_on_at_the_calls_of_a_function(view: View) -> None:
    names = [symbol_name(op) if op.name == FUNCTION else op.name for op in around(view.ops("stablehlo.negate"), view)]
    assert names == ["inner", "outer", MANUAL, "main"]


def test_called_functions(view: View) -> None:
    main = view.functions["main"]
    assert [symbol_name(each) for each in called_functions(main, view)] == ["main", "outer", "inner"]


def test_walks_end_in_circles_and_at_limits() -> None:
    edges = {1: [2, 3], 2: [1, 4], 3: [4], 4: [2]}
    assert list(reachable([1, 1], edges.__getitem__)) == [1, 2, 3, 4]
    assert postorder([1], edges.__getitem__) == [2, 4, 3, 1]
    assert postorder([1], edges.__getitem__, most=3) is None
    assert postorder([1], lambda node: None if node == 4 else edges[node]) is None
    assert list(reachable(["a"], lambda _: ["B", "b", "A"], key=str.lower)) == ["a", "B"]
