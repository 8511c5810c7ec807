"""Unsigned indices for the interpreter, which reads them as signed numbers: 200 of 8 bits as -56."""

from __future__ import annotations

from hlorewrite.ir.binding import ir
from hlorewrite.ir.view import nested_ops

_FIRST_INDEX = {"stablehlo.dynamic_slice": 1, "stablehlo.dynamic_update_slice": 2, "stablehlo.gather": 1}


def widen_unsigned_indices(module: ir.Operation) -> None:
    """Converts unsigned indices of ops to signed ones of 64 bits, which hold all their numbers up to 2^63 - 1.

    Args:
      module: the module, which is changed.
    """
    for op in nested_ops(module):
        first = _FIRST_INDEX.get(op.name)
        if op.name == "stablehlo.scatter":
            first = len(op.results)
        if first is None:
            continue
        last = len(op.operands) if op.name.startswith("stablehlo.dynamic") else first + 1
        for position in range(first, last):
            index = op.operands[position]
            tensor = ir.RankedTensorType(index.type)
            if isinstance(tensor.element_type, ir.IntegerType) and tensor.element_type.is_unsigned:
                wide = ir.RankedTensorType.get(tensor.shape, ir.IntegerType.get_signless(64))
                op.operands[position] = ir.Operation.create(
                    "stablehlo.convert", [wide], [index], ip=ir.InsertionPoint(op)).results[0]
