"""A broadcast as a pipelined chain of permutes: chunks move from member to member, all links at work at once.

With n members in a row and c chunks, step s sends chunk s - p from place p to place p + 1. After c + n - 2 steps every
member has every chunk, and each link has carried the value once (van de Geijn's pipelined broadcast).
"""

import itertools
import math
from collections.abc import Sequence

from hlorewrite.analysis.groups import rows_attribute
from hlorewrite.errors import UsageError
from hlorewrite.ir import COLLECTIVE_PERMUTE, Editor, ir
from hlorewrite.ir.types import tensor_type
from hlorewrite.passes.common.device_masks import compare, lookup, zeros_like
from hlorewrite.passes.common.emit import splat_constant
from hlorewrite.passes.common.op_writer import OpWriter


def emit_chain(editor: Editor, op: ir.Operation, rows: Sequence[Sequence[int]], id_op: str, chunks: int) -> ir.Value:
    """Emits a broadcast as a chain before the op.

    Args:
      editor: the editor of the module.
      op: the ``collective_broadcast``.
      rows: its groups, the source first.
      id_op: the op that returns a device's number in them.
      chunks: how many chunks.

    Returns:
      The broadcast value.
    """
    return _BroadcastChain(editor, op, rows, id_op, chunks).run()


def require_chain_options(name: str, chain_bytes: int, chunks: int) -> None:
    """Checks the options of a pass that writes chains.

    Args:
      name: the pass.
      chain_bytes: payload from which a broadcast becomes a chain.
      chunks: chunks of a chain.

    Raises:
      UsageError: no chunk, or a negative size.
    """
    if chunks < 1 or chain_bytes < 0:
        raise UsageError(f'pass "{name}" needs at least one chunk and a size of at least 0',
                         hint="omit the options to use their defaults")


class _BroadcastChain:
    def __init__(self, editor: Editor, op: ir.Operation, rows: Sequence[Sequence[int]], id_op: str,
                 chunks: int) -> None:
        self.editor, self.op, self.rows, self.writer = editor, op, rows, OpWriter.before(editor, op)
        self.type_ = ir.RankedTensorType(op.operands[0].type)
        self.total = math.prod(self.type_.shape)
        self.members = len(rows[0])
        self.chunks = max(1, min(chunks, self.total)) if self.members > 2 else 1
        self.width = -(-self.total // self.chunks)
        table = [0] * (1 + max(d for row in rows for d in row))
        for row in rows:
            for place, device in enumerate(row):
                table[device] = place
        self.place = lookup(editor, table, op, id_op)
        self.pairs = rows_attribute(editor.context, [(a, b) for row in rows for a, b in itertools.pairwise(row)])

    def run(self) -> ir.Value:
        """All steps, unrolled."""
        if self.chunks == 1 and self.members == 2:
            arrived = self._permute(self.op.operands[0])
            first = compare(self.editor, "EQ", self.place, 0, self.op)
            return self.writer.make("stablehlo.select", [first, self.op.operands[0], arrived], self.type_)
        buffer = self._chunked(self.op.operands[0])
        for step in range(self.chunks + self.members - 2):
            sent = self.writer.make("stablehlo.dynamic_slice", [buffer, *self._start(step)], [1, self.width],
                                    slice_sizes=self.writer.numbers([1, self.width]))
            arrived = self._permute(sent)
            # Place p receives chunk step - (p - 1); others keep what they have.
            updated = self.writer.make("stablehlo.dynamic_update_slice", [buffer, arrived, *self._start(step + 1)])
            buffer = self.writer.make("stablehlo.select", [self._receives(step), updated, buffer], buffer.type)
        flat = self.writer.reshaped(buffer, [self.chunks * self.width])
        return self.writer.reshaped(self.writer.part(flat, 0, 0, self.total), self.type_.shape)

    def _chunked(self, value: ir.Value) -> ir.Value:
        flat = self.writer.reshaped(value, [self.total])
        spare = self.chunks * self.width - self.total
        if spare:
            type_ = tensor_type([spare], self.type_.element_type)
            flat = self.writer.concatenated([flat, zeros_like(self.editor, type_, self.op)], 0)
        return self.writer.reshaped(flat, [self.chunks, self.width])

    def _start(self, step: int) -> list[ir.Value]:
        """The start of chunk ``step - place``; StableHLO clamps starts outside the value, and those chunks are not
        kept."""
        step_value, zero = self._constant(step), self._constant(0)
        place = self.writer.make("stablehlo.convert", [self.place], self._scalar("i32"))
        return [self.writer.make("stablehlo.subtract", [step_value, place]), zero]

    def _receives(self, step: int) -> ir.Value:
        """Whether chunk ``step + 1 - place`` exists and this is not the source."""
        low = max(1, step + 2 - self.chunks)
        above = compare(self.editor, "GE", self.place, low, self.op)
        below = compare(self.editor, "LE", self.place, step + 1, self.op)
        return self.writer.make("stablehlo.and", [above, below])

    def _permute(self, value: ir.Value) -> ir.Value:
        attributes = {"source_target_pairs": self.pairs}
        if "channel_handle" in self.op.attributes:
            attributes["channel_handle"] = self.op.attributes["channel_handle"]
        return self.writer.make(COLLECTIVE_PERMUTE.op, [value], value.type, **attributes)

    def _constant(self, number: int) -> ir.Value:
        return splat_constant(self.editor, number, self._scalar("i32"), self.op)

    def _scalar(self, element: str) -> ir.Type:
        with self.editor.context, ir.Location.unknown():
            return ir.RankedTensorType.get([], ir.Type.parse(element))
