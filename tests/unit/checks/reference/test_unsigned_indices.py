"""The oracle reads unsigned indices as XLA does: 200 of 8 bits is past the end, not before the start."""

from __future__ import annotations

import numpy as np

from hlorewrite.checks.reference.program import prepare
from hlorewrite.ir.load import parse


def test_unsigned_indices_past_the_end() -> None:
    """Slices and gathers are moved back to the last element; a scatter past the end writes nothing."""
    module = parse("""func.func public @main(%i: tensor<ui8>, %j: tensor<2x1xui8>, %u: tensor<1xi32>, %v: tensor<2xi32>)
        -> (tensor<1xi32>, tensor<4xi32>, tensor<2xi32>, tensor<4xi32>) {
      %c = stablehlo.constant dense<[10, 11, 12, 13]> : tensor<4xi32>
      %r = stablehlo.dynamic_slice %c, %i, sizes = [1] : (tensor<4xi32>, tensor<ui8>) -> tensor<1xi32>
      %s = stablehlo.dynamic_update_slice %c, %u, %i : (tensor<4xi32>, tensor<1xi32>, tensor<ui8>) -> tensor<4xi32>
      %g = "stablehlo.gather"(%c, %j) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
        start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}>
        : (tensor<4xi32>, tensor<2x1xui8>) -> tensor<2xi32>
      %t = "stablehlo.scatter"(%c, %j, %v) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        stablehlo.return %b : tensor<i32>
      }) : (tensor<4xi32>, tensor<2x1xui8>, tensor<2xi32>) -> tensor<4xi32>
      return %r, %s, %g, %t : tensor<1xi32>, tensor<4xi32>, tensor<2xi32>, tensor<4xi32> }""")
    inputs = [np.uint8(200), np.array([[200], [255]], np.uint8), np.array([7], np.int32), np.array([8, 9], np.int32)]
    sliced, updated, gathered, scattered = (row.tolist() for row in prepare(module).run([inputs]).outputs[0])
    assert (sliced, updated) == ([13], [10, 11, 12, 7])
    assert (gathered, scattered) == ([13, 13], [10, 11, 12, 13])
