"""Makes small tensors that masks repeat once per step, for loops and copies of their bodies to read.

A mask of an attention is the comparison of two iotas, of 1 MiB for 1024 tokens, which a broadcast repeats for each
head and sequence. If each kernel that reads it recomputes it, XLA:GPU considers each of its ops for each softmax, in
each copy of a body, which takes an eighth of the compile time of such a step. Read from memory, it is a small part of
such a kernel's reads.
"""

from collections.abc import Sequence

from hlorewrite.ir import Editor, ancestors, defining_op, element_count, ir, tensor_bytes, users
from hlorewrite.ops.table import FILLINGS

BARRIER = "stablehlo.optimization_barrier"
_TIMES_SMALLER = 16
"""A source is at most a sixteenth of the tensor that repeats it, so kernels that read that anyway take as long as
before."""
_MOST_BYTES = 16 * 2**20
"""Limit of the bytes of a source, so that it stays in a GPU's L2 cache from one kernel to the next."""
_AS_FAST = FILLINGS | {BARRIER}
"""Ops whose results are made as fast as they are read, or are read already."""


def keep_sources(makers: Sequence[ir.Operation], editor: Editor) -> bool:
    """Makes broadcasts of a small source read it from a barrier before all loops, where it is made once.

    A loop that carried such a broadcast no longer holds its buffer, which is sixteen times as large.

    Args:
      makers: the ops that make a value from constants, each after those it reads.
      editor: the editor of the module.

    Returns:
      Whether a broadcast was changed; ops that nothing reads any more are gone.
    """
    changed = False
    for number, op in enumerate(makers):
        if not _is_worth_keeping(op):
            continue
        before = makers[:number]
        editor.set_operand(op, 0, kept(op.operands[0], before, op, editor))
        for maker in reversed(before):
            editor.erase_if_dead(maker)
        changed = True
    return changed


def is_kept(op: ir.Operation) -> bool:
    """Whether an op is a barrier that keeps one value in memory for its readers."""
    return op.name == BARRIER and len(op.operands) == 1


def is_small_source(op: ir.Operation) -> bool:
    """Whether an op makes a small value that ops without regions repeat."""
    return len(op.results) == 1 and any(_is_small(op.results[0], op, reader)
                                        for reader, _ in users(op.results[0]) if not len(reader.regions))


def _is_worth_keeping(op: ir.Operation) -> bool:
    if op.name != "stablehlo.broadcast_in_dim":
        return False
    maker = defining_op(op.operands[0])
    return maker is not None and _is_small(op.operands[0], maker, op)


def _is_small(source: ir.Value, maker: ir.Operation, reader: ir.Operation) -> bool:
    """Whether a value takes some ops to make, and a reader of it makes a value sixteen times larger."""
    largest = max((tensor_bytes(result.type) for result in reader.results), default=0)
    return (maker.name not in _AS_FAST and element_count(source.type) > 1
            and tensor_bytes(source.type) <= min(_MOST_BYTES, largest // _TIMES_SMALLER))


def kept(value: ir.Value, makers: Sequence[ir.Operation], reader: ir.Operation, editor: Editor) -> ir.Value:
    """Recomputes a value before the loops around a reader, as the result of a barrier.

    Args:
      value: the value.
      makers: the ops that make it, each after those it reads.
      reader: an op in the loops.
      editor: the editor of the module.

    Returns:
      The same value, to be read from memory.
    """
    anchor = reader
    for outer in ancestors(reader):
        if outer.name != "stablehlo.while":
            break
        anchor = outer
    mapping: dict[ir.Value, ir.Value] = {}
    copies = editor.clone_ops(makers, anchor, mapping)
    made = mapping[value]
    result = editor.create(BARRIER, [made], [made.type], location=reader.location, before=anchor).results[0]
    for copy in reversed(copies):
        editor.erase_if_dead(copy)
    return result
