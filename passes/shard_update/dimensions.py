"""How a shard along one dimension goes through an op: elementwise ops, moves of dimensions, reductions."""

from __future__ import annotations

from math import prod

from hlorewrite.ir.binding import ir
from hlorewrite.passes.common.shard_index import splat_number
from hlorewrite.spmd.constants import is_splat
from hlorewrite.spmd.reducers import reduction_kind
from hlorewrite.spmd.types import element_count, is_static_tensor

ELEMENTWISE = frozenset({f"stablehlo.{name}" for name in (
    "abs", "add", "and", "atan2", "bitcast_convert", "cbrt", "ceil", "clamp", "compare", "complex", "convert", "cosine",
    "count_leading_zeros", "divide", "exponential", "exponential_minus_one", "floor", "imag", "is_finite", "log",
    "log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "real",
    "reduce_precision", "remainder", "round_nearest_afz", "round_nearest_even", "rsqrt", "select", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor")}
    | {"chlo.erf", "chlo.erf_inv", "chlo.square"})
"""Ops of one result each of whose elements is computed from the operands' elements at the same place, and scalars."""
TRANSPOSE, RESHAPE, BROADCAST, REDUCE = (f"stablehlo.{name}" for name in (
    "transpose", "reshape", "broadcast_in_dim", "reduce"))
_COMBINED = frozenset({"max", "min", "and", "or"})


def operand_dimensions(op: ir.Operation, dim: int, shards: int) -> list[int | None] | str:
    """What an op has to read so that it computes one shard of its result.

    Args:
      op: the op.
      dim: the dimension along which the result is sharded.
      shards: into how many.

    Returns:
      For each operand the dimension along which it is sharded, None where it is read whole; or why the op cannot
      compute a shard by itself.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> view = View(parse("func.func @f(%a: tensor<4x8xf32>) -> tensor<8x4xf32> {"
      ...     "%b = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32> "
      ...     "return %b : tensor<8x4xf32> }"))
      >>> operand_dimensions(view.ops("stablehlo.transpose")[0], 0, 4)
      [1]
    """
    if len(op.results) != 1 or not all(is_static_tensor(value.type) for value in (*op.operands, *op.results)):
        return f"{op.name} is not an op of one result of static shape"
    shape = _shape(op.results[0])
    if op.name in ELEMENTWISE and all(_shape(value) in (shape, []) for value in op.operands):
        return [dim if _shape(value) else None for value in op.operands]
    if op.name == TRANSPOSE:
        return [list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))[dim]]
    if op.name == RESHAPE:
        before = _same_place(shape, dim, _shape(op.operands[0]), shards)
        return "a reshape does not keep the shards together" if before is None else [before]
    if op.name == BROADCAST:
        before = _broadcast_dimensions(op).get(dim)
        return [before if before is not None and _shape(op.operands[0])[before] == shape[dim] else None]
    if op.name == REDUCE and len(op.operands) == 2:
        kept = [place for place in range(len(_shape(op.operands[0]))) if place not in reduced_dimensions(op)]
        return [kept[dim], None]
    return f"{op.name} does not compute each element from those at the same place"


def result_dimension(op: ir.Operation, position: int, dim: int, shards: int) -> int | str:
    """Along which dimension the result of an op is sharded when it reads a shard.

    Args:
      op: the op; not a reduction along the sharded dimension.
      position: of the operand that is sharded.
      dim: the dimension along which it is.
      shards: into how many.

    Returns:
      The dimension, or why the op cannot read a shard.
    """
    for place in range(len(_shape(op.results[0])) if len(op.results) == 1 and is_static_tensor(op.results[0].type)
                       else 0):
        read = operand_dimensions(op, place, shards)
        if isinstance(read, list) and read[position] == dim:
            return place
    reason = operand_dimensions(op, 0, shards)
    return reason if isinstance(reason, str) else f"{op.name} reads it whole"


def reduces_along(op: ir.Operation, position: int, dim: int) -> bool:
    """Whether an op is a reduction along the dimension that one of its operands is sharded along."""
    return op.name == REDUCE and position < len(op.operands) // 2 and dim in reduced_dimensions(op)


def whole_reduction(op: ir.Operation) -> str:
    """The kind of a reduction of a tensor to one element that may be taken of shards first.

    Args:
      op: a reduction along a sharded dimension.

    Returns:
      ``sum``, ``max``, ``min``, ``and`` or ``or``; empty where the reduction keeps more elements, computes anything
      else, starts from anything but a constant, or adds to something else than zero.
    """
    if len(op.operands) != 2 or element_count(op.results[0].type) != 1:
        return ""
    kind, start = reduction_kind(op) or "", splat_number(op.operands[1])
    return kind if (kind in _COMBINED and start is not None) or (kind == "sum" and start == 0) else ""


def is_repeated_number(value: ir.Value) -> bool:
    """Whether a tensor repeats one scalar, so that any shard of it is made at no cost."""
    op = value.owner.operation if not isinstance(value.owner, ir.Block) and value.owner is not None else None
    if op is None:
        return False
    return is_splat(op) or (op.name == BROADCAST and element_count(op.operands[0].type) == 1)


def reduced_dimensions(op: ir.Operation) -> list[int]:
    """The dimensions along which a ``reduce`` reduces."""
    return list(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))


def _broadcast_dimensions(op: ir.Operation) -> dict[int, int]:
    """Dimension of the result -> dimension of the operand."""
    return {to: place for place, to in enumerate(ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"]))}


def _same_place(shape: list[int], dim: int, other: list[int], shards: int) -> int | None:
    """The dimension of another shape of the same elements whose shards hold the same elements."""
    for place, size in enumerate(other):
        if size and size % shards == 0 and shape[dim] % shards == 0 and prod(other[:place]) == prod(shape[:dim]):
            return place
    return None


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape) if is_static_tensor(value.type) else []
