"""What a reducer region computes."""

from __future__ import annotations

from hlorewrite.ir.binding import ir
from hlorewrite.spmd.types import element_type

_KINDS = {"stablehlo.add": "sum", "stablehlo.multiply": "product", "stablehlo.maximum": "max",
          "stablehlo.minimum": "min", "stablehlo.and": "and", "stablehlo.or": "or"}
OP_OF_KIND = {kind: op for op, kind in _KINDS.items()}


def reduction_kind(op: ir.Operation) -> str | None:
    """The kind of reduction a collective, ``reduce`` or ``scatter`` computes.

    Args:
      op: an op whose first region is the reducer.

    Returns:
      ``sum``, ``product``, ``max``, ``min``, ``and``, ``or``; None when the region is anything else: when it converts
      in between, reads values from outside, or combines another element type than the op's (StableHLO lets a reduction
      promote its operands; then op and region disagree on where a sum wraps around or rounds).
    """
    if len(op.regions) == 0 or len(op.regions[0].blocks) != 1:
        return None
    block = op.regions[0].blocks[0]
    body = [inner.operation for inner in block.operations]
    if len(body) != 2 or len(block.arguments) != 2:
        return None
    combine, end = body
    if len(end.operands) != 1 or len(combine.results) != 1 or end.operands[0] != combine.results[0]:
        return None
    operands = list(combine.operands)
    arguments = list(block.arguments)
    if operands not in (arguments, arguments[::-1]) or _promotes(op, block):
        return None
    return _KINDS.get(combine.name)


def _promotes(op: ir.Operation, reducer: ir.Block) -> bool:
    """Whether the reducer works on another element type than the op's operands or results."""
    values = [*op.operands, *op.results]
    if op.name == "stablehlo.scatter":  # one operand, its indices, one update
        del values[1]
    type_ = element_type(reducer.arguments[0])
    return any(element_type(value) != type_ for value in (*values, reducer.arguments[1]))
