"""Chains of collectives through loops: what enters a loop at one position need not reach the others."""

from __future__ import annotations

import pytest

from hlorewrite.ir import op_key
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View
from hlorewrite.passes.interleave_halves.chains import WaitWalk, chained

STEP = """
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
  %first = "stablehlo.all_reduce"(%x) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %gradient = stablehlo.dot_general %first, %first, contracting_dims = [0] x [0]
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<4> : tensor<i32>
  %out:3 = stablehlo.while(%i = %zero, %h = %first, %g = {start}) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    cond {{
      %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    }} do {{
      %next = stablehlo.add %i, %one : tensor<i32>
      %act = stablehlo.tanh {activation} : tensor<8x8xf32>
      %sum = stablehlo.add %g, {added} : tensor<8x8xf32>
      stablehlo.return %next, %act, %sum : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    }}
  %last = "stablehlo.all_reduce"(%out#1) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %last, %out#2 : tensor<8x8xf32>, tensor<8x8xf32>
}}
"""


@pytest.mark.parametrize(("start", "activation", "added", "waits"), [
    ("%gradient", "%h", "%h", False),  # the loop only adds to it
    ("%gradient", "%g", "%h", True),  # the next layer reads it
    ("%w", "%h", "%gradient", False),  # captured, and only added
    ("%w", "%gradient", "%h", True),  # captured by the activations
])
def test_a_loop_keeps_its_positions_apart(start: str, activation: str, added: str, waits: bool):
    module = parse(STEP.format(start=start, activation=activation, added=added))
    view = View(module)
    reductions = view.ops("stablehlo.all_reduce")
    chains = chained({op_key(op): op for op in reductions}, WaitWalk())
    (gradient,), (loop,) = view.ops("stablehlo.dot_general"), view.ops("stablehlo.while")
    assert (op_key(gradient) in chains.keys) is waits
    straight = activation == "%h"
    assert len(chains.ops) == (2 if straight or waits else 0) and op_key(loop) in chains.keys


@pytest.mark.parametrize("activation", ["%h", "%g"])
@pytest.mark.parametrize(("closed", "linked"), [("stablehlo.tanh", 0), ("stablehlo.compare", 2)])
def test_no_chain_goes_through_closed_ops_of_a_loop(activation: str, closed: str, linked: int):
    view = View(parse(STEP.format(start="%gradient", activation=activation, added="%h")))
    reductions = {op_key(op): op for op in view.ops("stablehlo.all_reduce")}
    assert len(chained(reductions, WaitWalk()).ops) == 2
    assert len(chained(reductions, WaitWalk({op_key(op) for op in view.ops(closed)})).ops) == linked


def test_the_last_of_a_chain_is_not_awaited():
    view = View(parse(STEP.format(start="%w", activation="%h", added="%h")))
    first, last = view.ops("stablehlo.all_reduce")
    chains = chained({op_key(op): op for op in (first, last)}, WaitWalk())
    assert chains.awaited == {op_key(first)} and len(chains.ops) == 2
