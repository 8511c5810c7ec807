"""Ops that do more than compute their results: how often and in which order they run is seen outside."""

from collections.abc import Iterable
from functools import cached_property

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.collectives import COLLECTIVES
from hlorewrite.ir.effects import MAY_HAVE_EFFECTS
from hlorewrite.ir.inline import contains_any
from hlorewrite.ir.view import View, nested_ops

_PURE = ("stablehlo.", "chlo.", "func.call")


class Effects:
    """Finds ops with effects, also inside called functions.

    Args:
      view: the module.
    """

    def __init__(self, view: View) -> None:
        self.view = view

    @cached_property
    def _holders(self) -> dict[bool, set[int]]:
        """The keys of the functions that hold an op with effects, without and with collectives."""
        functions = list(self.view.functions.values())
        return {collectives: {op_key(function) for function in functions if holds(function)} for collectives, holds in
                ((False, contains_any(MAY_HAVE_EFFECTS, self.view)),
                 (True, contains_any((*MAY_HAVE_EFFECTS, *COLLECTIVES), self.view)))}

    def first(self, ops: Iterable[ir.Operation], *, collectives: bool = False) -> str:
        """The name of the first op with effects among some ops, what they hold and what they call.

        Args:
          ops: the ops.
          collectives: whether a collective counts too, since all devices of its group have to run it equally often.

        Returns:
          The name; empty when there is none.
        """
        counted = (*MAY_HAVE_EFFECTS, *(COLLECTIVES if collectives else ()))
        for inner in (inner for op in ops for inner in nested_ops(op)):
            if inner.name in counted or not inner.name.startswith(_PURE):
                return inner.name
            callee = self.view.callee(inner) if inner.name == "func.call" else None
            if callee is not None and op_key(callee) in self._holders[collectives]:
                return inner.name
        return ""
