"""The copies into and out of a bucket's buffer that are kernels of their own.

XLA:GPU fuses the concatenation of a bucket with the elementwise ops that make its members, and the slices of the result
with those that read them: a sum of gradients is written into the buffer at once, an update reads it there. Results of
matrix products, arguments and results of loops are copied (measured: compute time of a GPT step's schedule is the same
with and without buckets where every member is a sum).
"""

from hlorewrite.cost.kernels.clock import KERNELS
from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import COLLECTIVES
from hlorewrite.ir.view import defining_op, users

_UNFUSED = frozenset((*KERNELS, *COLLECTIVES, "stablehlo.optimization_barrier", "stablehlo.return", "func.return",
                      "sdy.return", "stablehlo.constant"))
_RESHAPE = "stablehlo.reshape"


def copied_in(op: ir.Operation) -> bool:
    """Whether a copy into a buffer of what a collective reads is a kernel of its own.

    Args:
      op: the collective.

    Returns:
      False where one elementwise op makes it that nothing else reads.
    """
    value = op.operands[0]
    source = defining_op(value)
    # Ends: an op follows its operands.
    while source is not None and source.name == _RESHAPE and len(users(value)) == 1:
        value = source.operands[0]
        source = defining_op(value)
    return source is None or source.name in _UNFUSED or len(users(value)) != 1


def copied_out(op: ir.Operation) -> bool:
    """Whether a copy of a collective's result out of a buffer is a kernel of its own.

    Args:
      op: the collective.

    Returns:
      False where elementwise ops alone read it.
    """
    readers = [reader for reader, _ in users(op.results[0])]
    # Ends: an op follows its operands.
    while any(reader.name == _RESHAPE for reader in readers):
        readers = [other for reader in readers for other in (
            [after for after, _ in users(reader.results[0])] if reader.name == _RESHAPE else [reader])]
    return not readers or any(reader.name in _UNFUSED for reader in readers)
