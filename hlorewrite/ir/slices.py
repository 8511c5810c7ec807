"""Slices along other dimensions than the one along which a tensor is sharded."""

from __future__ import annotations

from hlorewrite.ir.binding import ir

SLICES = ("stablehlo.slice", "stablehlo.dynamic_slice")


def takes_whole(op: ir.Operation, dimension: int) -> bool:
    """Whether a slice takes a dimension of its operand whole.

    Args:
      op: one of ``SLICES``.
      dimension: of its operand and of its result.
    """
    before, after = (ir.RankedTensorType(value.type).shape[dimension] for value in (op.operands[0], op.results[0]))
    return before == after


def attributes_for(op: ir.Operation, dimension: int, size: int) -> dict[str, ir.Attribute]:
    """The attributes of a slice for an operand of another size along a dimension that it takes whole.

    Args:
      op: the slice.
      dimension: which it takes whole.
      size: of the other operand along it.
    """
    attributes = {name: op.attributes[name] for name in op.attributes}
    replaced = {"slice_sizes": size} if op.name == "stablehlo.dynamic_slice" else \
        {"start_indices": 0, "limit_indices": size, "strides": 1}
    for name, number in replaced.items():
        numbers = list(ir.DenseI64ArrayAttr(attributes[name]))
        numbers[dimension] = number
        attributes[name] = ir.DenseI64ArrayAttr.get(numbers, op.context)
    return attributes
