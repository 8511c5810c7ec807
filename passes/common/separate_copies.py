"""Copies of whole values or of their parts that take a separate kernel, and those that an XLA kernel makes anyway.

XLA computes elementwise ops, slices and concatenations in the kernel that reads or writes memory next to them. So a
value that such an op makes can be written in parts, and one that only such ops read can be read from parts.
"""

from hlorewrite.cost.kernels.clock import KERNELS
from hlorewrite.ir import COLLECTIVES, defining_op, ir, users
from hlorewrite.ir.regions import BARRIER
from hlorewrite.ops.table import TERMINATORS

_SEPARATE = frozenset((*KERNELS, *COLLECTIVES, *TERMINATORS, BARRIER, "stablehlo.constant"))
_RESHAPE, _CONCATENATE = "stablehlo.reshape", "stablehlo.concatenate"


def copied_from(value: ir.Value) -> bool:
    """Whether a copy of a value, or of a part of it, takes a separate kernel.

    Args:
      value: the value; the copy takes its place, so nothing else reads it.

    Returns:
      False if an op makes it that XLA computes in the kernel of the copy.
    """
    source = defining_op(value)
    # Ends: an op follows its operands.
    while source is not None and source.name == _RESHAPE and len(users(source.operands[0])) == 1:
        source = defining_op(source.operands[0])
    return source is None or source.name in _SEPARATE or source.name == _RESHAPE or _is_sliced_scatter(source)


def copied_for(reader: ir.Operation) -> bool:
    """Whether an op needs its operands in memory, so that joining them from parts takes a separate kernel.

    Args:
      reader: the op.

    Returns:
      False if XLA computes it in the kernel of what reads it.
    """
    return any(each.name in _SEPARATE for each in _past_reshapes([reader]))


def is_concatenated(value: ir.Value) -> bool:
    """Whether a concatenation is all that reads a value, perhaps reshaped.

    Args:
      value: the value.
    """
    return [each.name for each in _past_reshapes([reader for reader, _ in users(value)])] == [_CONCATENATE]


def _past_reshapes(readers: list[ir.Operation]) -> list[ir.Operation]:
    """Readers, with those of a reshape's result in place of the reshape."""
    # Ends: an op follows its operands.
    while any(each.name == _RESHAPE for each in readers):
        readers = [other for each in readers for other in (
            [after for after, _ in users(each.results[0])] if each.name == _RESHAPE else [each])]
    return readers


def _is_sliced_scatter(op: ir.Operation) -> bool:
    """Whether an op drops rows of a scatter, such as the one for tokens without a place: XLA then scatters without."""
    made = defining_op(op.operands[0]) if op.name == "stablehlo.slice" else None
    return made is not None and made.name == "stablehlo.scatter"
