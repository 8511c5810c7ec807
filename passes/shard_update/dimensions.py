"""How a shard along one dimension goes through ops of an update: elementwise ops, moves of dimensions, reductions."""

from __future__ import annotations

from hlorewrite.ir.binding import ir
from hlorewrite.passes.common.shard_forms import ELEMENTWISE, ShardForm, repeats_whole, shard_form
from hlorewrite.passes.common.shard_index import splat_number
from hlorewrite.spmd.constants import is_splat
from hlorewrite.spmd.reducers import reduction_kind
from hlorewrite.spmd.types import element_count, is_static_tensor

BROADCAST, REDUCE = "stablehlo.broadcast_in_dim", "stablehlo.reduce"
# Ops whose copies compute a shard with the attributes they have; slices and pads name their sizes.
_OF_UPDATES = ELEMENTWISE | {"stablehlo.transpose", "stablehlo.reshape", BROADCAST, REDUCE}
_COMBINED = frozenset({"max", "min", "and", "or"})


def operand_dimensions(op: ir.Operation, dim: int) -> list[int | None] | str:
    """What an op has to read so that it computes one shard of its result.

    Args:
      op: the op.
      dim: the dimension along which the result is sharded.

    Returns:
      For each operand the dimension along which it is sharded, None where it is read whole; or why the op cannot
      compute a shard by itself.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> view = View(parse("func.func @f(%a: tensor<4x8xf32>) -> tensor<8x4xf32> {"
      ...     "%b = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32> "
      ...     "return %b : tensor<8x4xf32> }"))
      >>> operand_dimensions(view.ops("stablehlo.transpose")[0], 0)
      [1]
    """
    if op.name == BROADCAST and repeats_whole(op, dim):
        return [None]
    form = _form(op, dim, None)
    return form if isinstance(form, str) else list(form.operands)


def result_dimension(op: ir.Operation, position: int, dim: int) -> int | str:
    """Along which dimension the result of an op is sharded when it reads a shard.

    Args:
      op: the op; not a reduction along the sharded dimension.
      position: of the operand that is sharded.
      dim: the dimension along which it is.

    Returns:
      The dimension, or why the op cannot read a shard.
    """
    form = _form(op, dim, position)
    if isinstance(form, str):
        return form
    return f"{op.name} reads it whole" if form.result is None else form.result


def _form(op: ir.Operation, dim: int, position: int | None) -> ShardForm | str:
    if len(op.results) != 1 or not all(is_static_tensor(value.type) for value in (*op.operands, *op.results)):
        return f"{op.name} is not an op of one result of static shape"
    if op.name not in _OF_UPDATES or (op.name == REDUCE and len(op.operands) != 2):
        return f"{op.name} does not compute each element from those at the same place"
    form = shard_form(op, dim, position)
    return f"{op.name} {form}" if isinstance(form, str) else form


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

