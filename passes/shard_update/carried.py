"""How ops of an update propagate a shard, and reductions of it to one element."""

from hlorewrite.ir import element_count, ir
from hlorewrite.ops.attributes import ints
from hlorewrite.ops.dims import DimFactor, dim_factor
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.ops.table import ELEMENTWISE
from hlorewrite.passes.common.shard_index import splat_number

REDUCE = "stablehlo.reduce"
CARRIERS = ELEMENTWISE | {f"stablehlo.{name}" for name in (
    "bitcast_convert", "transpose", "reshape", "broadcast_in_dim", "reduce")}
"""Ops of one result whose shards are computed from the operands' shards at the same place."""
_COMBINED = frozenset({"max", "min", "and", "or"})


def operand_dimensions(op: ir.Operation, dim: int, shards: int) -> list[int | None] | str:
    """The operands that an op needs to compute one shard of its result.

    Args:
      op: the op.
      dim: the dimension along which the result is sharded.
      shards: the number of shards.

    Returns:
      For each operand, its sharded dimension, or None if it is read whole; or why the op cannot compute a single shard.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> view = View(parse("func.func @f(%a: tensor<4x8xf32>) -> tensor<8x4xf32> {"
      ...     "%b = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32> "
      ...     "return %b : tensor<8x4xf32> }"))
      >>> operand_dimensions(view.ops("stablehlo.transpose")[0], 0, 4)
      [1]
    """
    factor = _factor(op, dim, None, shards)
    return factor if isinstance(factor, str) else list(factor.operands)


def result_dimension(op: ir.Operation, position: int, dim: int, shards: int) -> int | str:
    """The dimension along which an op's result is sharded when it reads a shard.

    Args:
      op: the op; not a reduction along the sharded dimension.
      position: the position of the operand that is sharded.
      dim: the dimension along which it is sharded.
      shards: the number of shards.

    Returns:
      The dimension, or why the op cannot read a shard.
    """
    factor = _factor(op, dim, position, shards)
    if isinstance(factor, str):
        return factor
    return f"{op.name} sums across several shards" if factor.result is None else factor.result


def reduces_along(op: ir.Operation, position: int, dim: int) -> bool:
    """Whether an op is a reduction along the dimension that one of its operands is sharded along."""
    return (op.name == REDUCE and position < len(op.operands) // 2
            and dim in ints(op, "dimensions"))


def whole_reduction(op: ir.Operation) -> str:
    """The kind of a reduction to one element that may reduce shards first.

    Args:
      op: a reduction along a sharded dimension.

    Returns:
      ``sum``, ``max``, ``min``, ``and`` or ``or``; empty if the reduction keeps more elements, computes anything else,
      does not start from a constant, or adds to a value other than zero.
    """
    if len(op.operands) != 2 or element_count(op.results[0].type) != 1:
        return ""
    kind, start = reduction_kind(op) or "", splat_number(op.operands[1])
    return kind if (kind in _COMBINED and start is not None) or (kind == "sum" and start == 0) else ""


def _factor(op: ir.Operation, dim: int, position: int | None, shards: int) -> DimFactor | str:
    if op.name not in CARRIERS or len(op.results) != 1:
        return f"{op.name} does not compute each element from those at the same place"
    factor = dim_factor(op, dim, position, shards)
    return f"{op.name} {factor}" if isinstance(factor, str) else factor
