"""Ops that compute each row of their results, along the first dimension, from the same row of their operands."""

from hlorewrite.ir import ir, is_static_tensor, sdy
from hlorewrite.ops.attributes import PADDING, ints
from hlorewrite.ops.dims import dim_factor
from hlorewrite.ops.table import ELEMENTWISE
from hlorewrite.passes.common.shard_index import splat_number

_DOT = "stablehlo.dot_general"
ROW_BY_ROW = ELEMENTWISE | {_DOT, *(f"stablehlo.{name}" for name in (
    "transpose", "reshape", "broadcast_in_dim", "reduce", "slice"))}
"""Ops that are copied for parts of a stack; a matrix product only if both operands are stacks."""


def rows_of(value: ir.Value) -> int:
    """The size of a value's first dimension; 0 for scalars and dynamic shapes."""
    if not is_static_tensor(value.type):
        return 0
    shape = ir.RankedTensorType(value.type).shape
    return shape[0] if len(shape) else 0


def corresponding(op: ir.Operation) -> list[list[ir.Value]]:
    """Groups of operands and results whose rows correspond; none if the op mixes rows.

    Row i of each result in a group depends on row i of the operands in it, and on whole operands that are in none.

    Args:
      op: any op.
    """
    if op.name == "stablehlo.optimization_barrier":
        pairs = zip(op.operands, op.results, strict=True)
        return [] if len(op.attributes) else [[a, b] for a, b in pairs if rows_of(a)]
    if len(op.results) != 1 or not rows_of(op.results[0]):
        return []
    if op.name == "sdy.sharding_constraint":
        return [[op.operands[0], op.results[0]]] if _uncut(op) else []
    factor = dim_factor(op, 0) if op.name in ROW_BY_ROW else ""
    if isinstance(factor, str) or any(factor.operands) or (op.name == _DOT and None in factor.operands):
        return []
    return [[*(operand for operand, d in zip(op.operands, factor.operands, strict=True) if d == 0), op.results[0]]]


def _uncut(op: ir.Operation) -> bool:
    dimensions = sdy.TensorShardingAttr(op.attributes["sharding"]).dimension_shardings
    return not list(sdy.DimensionShardingAttr(dimensions[0]).axes)


def row_range(op: ir.Operation) -> tuple[int, int] | None:
    """The rows (first, end) that a slice takes, one after the other; None for any other op."""
    if op.name != "stablehlo.slice" or not rows_of(op.operands[0]) or ints(op, "strides")[0] != 1:
        return None
    return ints(op, "start_indices")[0], ints(op, "limit_indices")[0]


def padded_range(op: ir.Operation) -> tuple[int, int] | None:
    """The rows of its result that a pad's operand fills, the others being zero; None for any other op."""
    if op.name != "stablehlo.pad" or not rows_of(op.operands[0]) or splat_number(op.operands[1]) != 0:
        return None
    low, high, inside = (ints(op, name) for name in PADDING)
    if any(low[1:]) or any(high[1:]) or any(inside) or low[0] < 0 or high[0] < 0:
        return None
    return low[0], low[0] + rows_of(op.operands[0])
