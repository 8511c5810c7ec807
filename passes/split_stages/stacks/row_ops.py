"""Ops that compute each row of their results, along the first dimension, from the same row of their operands."""

from __future__ import annotations

from hlorewrite.ir.binding import ir, sdy
from hlorewrite.ir.types import is_static_tensor
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.passes.common.shard_index import splat_number

_ELEMENTWISE = frozenset(f"stablehlo.{name}" for name in (
    "abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "convert", "cosine", "count_leading_zeros",
    "divide", "exponential", "exponential_minus_one", "floor", "is_finite", "log", "log_plus_one", "logistic",
    "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "reduce_precision", "remainder",
    "round_nearest_afz", "round_nearest_even", "rsqrt", "select", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"))


def rows_of(value: ir.Value) -> int:
    """The size of a value's first dimension; 0 for scalars and dynamic shapes."""
    if not is_static_tensor(value.type):
        return 0
    shape = ir.RankedTensorType(value.type).shape
    return shape[0] if len(shape) else 0


def corresponding(op: ir.Operation) -> list[list[ir.Value]]:
    """Groups of operands and results of which the same rows belong together; none if the op mixes rows.

    Row i of each result in a group depends on row i of the operands in it, and on whole operands that are in none.

    Args:
      op: any op.
    """
    if op.name == "stablehlo.optimization_barrier":
        pairs = zip(op.operands, op.results, strict=True)
        return [] if len(op.attributes) else [[a, b] for a, b in pairs if rows_of(a)]
    if len(op.results) != 1 or not rows_of(op.results[0]):
        return []
    result, rows = op.results[0], rows_of(op.results[0])
    if op.name in _ELEMENTWISE:
        same = [each for each in op.operands if rows_of(each)]
        return [[*same, result]]
    keeps = _KEEPS.get(op.name)
    if keeps is None or not len(op.operands) or rows_of(op.operands[0]) != rows or not keeps(op):
        return []
    both = op.name == "stablehlo.dot_general"
    return [[*(op.operands if both else list(op.operands)[:1]), result]]


def _numbers(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def _full_rows(op: ir.Operation) -> bool:
    return (_numbers(op, "start_indices")[0], _numbers(op, "strides")[0]) == (0, 1) and \
        _numbers(op, "limit_indices")[0] == rows_of(op.operands[0])


def _batches(op: ir.Operation) -> bool:
    text = str(op.attributes["dot_dimension_numbers"]).replace(" ", "")
    return "lhs_batching_dimensions=[0" in text and "rhs_batching_dimensions=[0" in text and \
        rows_of(op.operands[1]) == rows_of(op.operands[0])


def _uncut(op: ir.Operation) -> bool:
    dimensions = sdy.TensorShardingAttr(op.attributes["sharding"]).dimension_shardings
    return not list(sdy.DimensionShardingAttr(dimensions[0]).axes)


_KEEPS = {
    "stablehlo.transpose": lambda op: _numbers(op, "permutation")[0] == 0,
    "stablehlo.reshape": lambda op: True,
    "stablehlo.broadcast_in_dim": lambda op: _numbers(op, "broadcast_dimensions")[0] == 0,
    "stablehlo.reduce": lambda op: 0 not in _numbers(op, "dimensions") and reduction_kind(op) is not None,
    "stablehlo.slice": _full_rows,
    "stablehlo.dot_general": _batches,
    "sdy.sharding_constraint": _uncut,
}


def repeats_rows(op: ir.Operation) -> bool:
    """Whether all rows of an op's result are alike, so that a result of fewer rows is made in the same way."""
    if op.name == "stablehlo.broadcast_in_dim":
        return 0 not in _numbers(op, "broadcast_dimensions")
    return op.name == "stablehlo.constant" and ir.DenseElementsAttr(op.attributes["value"]).is_splat


def row_range(op: ir.Operation) -> tuple[int, int] | None:
    """The rows (first, end) that a slice takes, one after the other; None for any other op."""
    if op.name != "stablehlo.slice" or not rows_of(op.operands[0]) or _numbers(op, "strides")[0] != 1:
        return None
    return _numbers(op, "start_indices")[0], _numbers(op, "limit_indices")[0]


def padded_range(op: ir.Operation) -> tuple[int, int] | None:
    """The rows of its result that a pad's operand fills, the others being zero; None for any other op."""
    if op.name != "stablehlo.pad" or not rows_of(op.operands[0]) or splat_number(op.operands[1]) != 0:
        return None
    low, high, inside = (_numbers(op, f"{name}") for name in ("edge_padding_low", "edge_padding_high",
                                                              "interior_padding"))
    if any(low[1:]) or any(high[1:]) or any(inside) or low[0] < 0 or high[0] < 0:
        return None
    return low[0], low[0] + rows_of(op.operands[0])
