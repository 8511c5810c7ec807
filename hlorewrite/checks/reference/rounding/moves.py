"""Ops that only move elements: for each element of the result, which element of which operand it is.

An index map is made by applying the op to the places of the elements instead of to the elements. The interpreter
does it for ops that are not written here, so that their meaning is written down once.
"""

from collections.abc import Sequence

import numpy as np

from hlorewrite.checks.reference.rounding.eval_op import eval_op
from hlorewrite.ir.binding import ir
from hlorewrite.ops.attributes import shape_of

Places = np.ndarray
"""int64: of each element, its place among the elements of all operands."""
INTERPRETED = {"gather": (0,)}
"""Moves that the interpreter resolves, and which of their operands hold elements; the others hold indices."""


def places(shapes: Sequence[tuple[int, ...]]) -> list[Places]:
    """The places of the elements of some operands, counted through."""
    made, start = [], 0
    for shape in shapes:
        count = int(np.prod(shape, dtype=np.int64))
        made.append(np.arange(start, start + count, dtype=np.int64).reshape(shape))
        start += count
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
    [made] = eval_op(op, given, [result])
    return made
