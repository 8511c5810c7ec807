"""Moves of elements, against the interpreter of StableHLO."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from hlorewrite.ir.element_moves import broadcast_in_dim
from hlorewrite.ir.load import parse
from hlorewrite.oracle.program import prepare


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("stretched", [False, True])
def test_broadcast_in_dim_with_dimensions_in_any_order(rank: int, stretched: bool) -> None:
    """Each order of dimensions in a result of three or four, with and without one that is repeated."""
    source = [2, 3, 4][:rank]
    if stretched:
        source[0] = 1
    elements = np.arange(np.prod(source), dtype=np.float32).reshape(source)
    operand = f"tensor<{'x'.join(map(str, source))}xf32>"
    for results in (3, 4):
        for dims in permutations(range(results), rank):
            shape = [5] * results
            for axis, target in enumerate(dims):
                shape[target] = 5 if source[axis] == 1 else source[axis]
            result = f"tensor<{'x'.join(map(str, shape))}xf32>"
            module = parse(f"func.func @main(%x: {operand}) -> {result} {{ %y = stablehlo.broadcast_in_dim %x, "
                           f"dims = {list(dims)} : ({operand}) -> {result} return %y : {result} }}")
            [[expected]] = prepare(module, "main").run([[elements]]).outputs
            assert np.array_equal(broadcast_in_dim(elements, dims, shape), expected), dims
