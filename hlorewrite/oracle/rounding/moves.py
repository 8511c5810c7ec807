"""Ops that only move elements: for each element of the result, which element of which operand it is.

An index map is made by applying the op to the places of the elements instead of to the elements. The interpreter
does it for ops that are not written here, so that their meaning is written down once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hlorewrite.ir.binding import ir
from hlorewrite.ir.element_moves import broadcast_in_dim
from hlorewrite.oracle.rounding.alone import run_alone

Places = np.ndarray
"""int64: of each element, its place among the elements of all operands."""


def _ints(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """The shape of a tensor."""
    return tuple(ir.RankedTensorType(value.type).shape)


def _broadcast(op: ir.Operation, x: Places) -> Places:
    return broadcast_in_dim(x, _ints(op, "broadcast_dimensions"), shape_of(op.results[0]))


def _slice(op: ir.Operation, x: Places) -> Places:
    bounds = zip(_ints(op, "start_indices"), _ints(op, "limit_indices"), _ints(op, "strides"), strict=True)
    return x[tuple(slice(*bound) for bound in bounds)]


def _concatenate(op: ir.Operation, *operands: Places) -> Places:
    return np.concatenate(operands, axis=ir.IntegerAttr(op.attributes["dimension"]).value)


STATIC: dict[str, Callable[..., Places]] = {
    "reshape": lambda op, x: x.reshape(shape_of(op.results[0])),
    "transpose": lambda op, x: x.transpose(_ints(op, "permutation")),
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "concatenate": _concatenate,
    "reverse": lambda op, x: np.flip(x, tuple(_ints(op, "dimensions"))),
}
INTERPRETED = {"pad": (0, 1), "gather": (0,)}
"""Moves that the interpreter resolves, and which of their operands hold elements; the others hold indices."""


def places(shapes: Sequence[tuple[int, ...]]) -> list[Places]:
    """The places of the elements of some operands, counted through."""
    made, start = [], 0
    for shape in shapes:
        count = int(np.prod(shape, dtype=np.int64))
        made.append(np.arange(start, start + count, dtype=np.int64).reshape(shape))
        start += count
    return made


def dynamic_slice(op: ir.Operation, x: Places, starts: Sequence[int]) -> Places:
    """The places a ``dynamic_slice`` reads; starts are clamped, as the specification says."""
    sizes = _ints(op, "slice_sizes")
    clamped = [min(max(start, 0), have - size) for start, have, size in zip(starts, x.shape, sizes, strict=True)]
    return x[tuple(slice(start, start + size) for start, size in zip(clamped, sizes, strict=True))]


def dynamic_update_slice(x: Places, update: Places, starts: Sequence[int]) -> Places:
    """The places a ``dynamic_update_slice`` results in."""
    clamped = [min(max(start, 0), have - size) for start, have, size in zip(starts, x.shape, update.shape, strict=True)]
    made = x.copy()
    made[tuple(slice(start, start + size) for start, size in zip(clamped, update.shape, strict=True))] = update
    return made


def interpreted(op: ir.Operation, elements: Sequence[Places], indices: Sequence[tuple[np.ndarray, ir.Type]]) -> Places:
    """The index map of an op by the interpreter, which runs it on places.

    Args:
      op: the op, without regions; its first operands hold elements, the others indices.
      elements: places of the elements.
      indices: the other operands, with their types.

    Returns:
      The place of each element of the result.
    """
    whole = ir.IntegerType.get_signless(64)
    given = [(each, ir.RankedTensorType.get(each.shape, whole)) for each in elements] + list(indices)
    result = ir.RankedTensorType.get(shape_of(op.results[0]), whole)
    [made] = run_alone(op, given, [result])
    return made
