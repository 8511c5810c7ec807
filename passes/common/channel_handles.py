"""Channel handles of copied collectives."""

from __future__ import annotations

import re

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.view import View, nested_ops

_HANDLE = re.compile(r"handle = (\d+)")


class ChannelHandles:
    """Handles that no op of a module has; equal ones of a copy stay equal, as send and recv need.

    Args:
      view: the module.
      editor: its editor.
    """

    def __init__(self, view: View, editor: Editor) -> None:
        self.editor = editor
        self._next = 1 + max((_handle(op) for op in nested_ops(view.module.operation)), default=0)
        self._renamed: dict[str, ir.Attribute] = {}

    def renew(self, copy: ir.Operation) -> None:
        """Gives a copy, and what stands in it, handles of its own."""
        for op in nested_ops(copy):
            if not _handle(op):
                continue
            text = str(op.attributes["channel_handle"])
            if text not in self._renamed:
                with self.editor.context:
                    self._renamed[text] = ir.Attribute.parse(_HANDLE.sub(f"handle = {self._next}", text))
                self._next += 1
            self.editor.set_attribute(op, "channel_handle", self._renamed[text])

    def forget(self) -> None:
        """The next ops are of another copy."""
        self._renamed = {}


def _handle(op: ir.Operation) -> int:
    found = _HANDLE.search(str(op.attributes["channel_handle"])) if "channel_handle" in op.attributes else None
    return int(found[1]) if found else 0
