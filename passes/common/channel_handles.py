"""Channel handles of copied collectives."""

from hlorewrite.ir.binding import ir
from hlorewrite.ir.channels import channel_number, renumbered
from hlorewrite.ir.collectives import CHANNEL
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.view import View, nested_ops


class ChannelHandles:
    """Handles that no op of a module has; equal ones of a copy stay equal, as send and recv need.

    Args:
      view: the module.
      editor: its editor.
    """

    def __init__(self, view: View, editor: Editor) -> None:
        self.editor = editor
        self._next = 1 + max((channel_number(op) for op in nested_ops(view.module.operation)), default=0)
        self._renewed: dict[ir.Attribute, ir.Attribute] = {}

    def renew(self, copy: ir.Operation) -> None:
        """Gives a copy, and what stands in it, handles of its own."""
        for op in nested_ops(copy):
            if channel_number(op) == 0:
                continue
            old = op.attributes[CHANNEL]
            if old not in self._renewed:
                self._renewed[old] = renumbered(op, self._next)
                self._next += 1
            self.editor.set_attribute(op, CHANNEL, self._renewed[old])

    def forget(self) -> None:
        """The next ops are of another copy."""
        self._renewed = {}
