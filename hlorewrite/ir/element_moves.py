"""Ops that only move elements, applied to numpy arrays: of numbers, or of the places the elements come from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def broadcast_in_dim(elements: np.ndarray, dimensions: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """The elements of ``stablehlo.broadcast_in_dim``, as a read-only view of its operand's.

    Operand dimension ``d`` becomes result dimension ``dimensions[d]``. The list may be in any order: one that does not
    ascend also transposes (specification, ``broadcast_in_dim``).

    Args:
      elements: the operand, of any element type.
      dimensions: the attribute ``broadcast_dimensions``.
      shape: the shape of the result.

    Returns:
      An array of that shape.

    Example:
      >>> broadcast_in_dim(np.array([[1, 2], [3, 4]]), [2, 1], [1, 2, 2]).tolist()
      [[[1, 3], [2, 4]]]
    """
    held = [1] * len(shape)
    for axis, target in enumerate(dimensions):
        held[target] = elements.shape[axis]
    order = sorted(range(len(dimensions)), key=lambda axis: dimensions[axis])
    return np.broadcast_to(elements.transpose(order).reshape(held), tuple(shape))
