"""Collectives of a newer jaxlib than the table lists: nothing is concluded from them, and nothing is rewritten."""

from __future__ import annotations

import pytest
from spmd_helpers import CHANNEL, marked, module, rows

from hlorewrite.analysis.groups import groups_of
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.rules.dialects import op_names

REDUCE = f"""func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %c = stablehlo.constant dense<1.0> : tensor<4xf32>
  %r = "stablehlo.collective_reduce"(%c) <{{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, {CHANNEL}}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }}) {{test.v}} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}}"""
BROADCAST = f"""func.func @main(%a: tensor<4xf32>, %root: tensor<1xi32>) -> tensor<4xf32> {{
  %r = "stablehlo.collective_broadcast"(%a, %root) <{{{CHANNEL}, has_dynamic_root,
    replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}}> {{test.v}} :
    (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}}"""
needs_0_12 = pytest.mark.skipif("stablehlo.collective_reduce" not in op_names("stablehlo"),
                                reason="this jaxlib lacks the ops; 0.12 has them")


@needs_0_12
def test_a_reduction_to_one_member_is_not_uniform() -> None:
    """Its operand is a constant, and its result is not the same on all members."""
    view = module(REDUCE)
    reason = Uniformity(view, rows((0, 1, 2, 3))).varying(marked(view))
    assert reason is not None
    assert "a collective that the analysis does not know" in str(reason)


@needs_0_12
def test_a_broadcast_from_a_member_that_an_operand_names_is_refused() -> None:
    view = module(BROADCAST)
    answer = groups_of(view.ops("stablehlo.collective_broadcast")[0], view)
    assert answer == "an operand decides which member of a group it sends from"
