"""Ops that do more than compute their results from their operands: it matters how often and in which order they run."""

from collections.abc import Iterable
from functools import cached_property

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.collectives import COLLECTIVES
from hlorewrite.ir.inline import contains_any
from hlorewrite.ir.view import View, nested_ops

EFFECTS = ("stablehlo.send", "stablehlo.recv", "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.rng",
           "stablehlo.create_token", "stablehlo.after_all", "stablehlo.async_start", "stablehlo.async_done",
           "stablehlo.composite")
"""Ops that always have effects; a custom call states whether it has any (``has_side_effect``)."""
MAY_HAVE_EFFECTS = ("stablehlo.custom_call", *EFFECTS)
"""The same, and all custom calls, for callers that do not look at ``has_side_effect``."""


def has_side_effect(op: ir.Operation) -> bool:
    """Whether a custom call says that it has a side effect.

    Args:
      op: a ``stablehlo.custom_call``; any other op says nothing.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> view = View(parse("func.func @f() { stablehlo.custom_call @print() {has_side_effect = true} : () -> ()"
      ...                   "  stablehlo.custom_call @nothing() : () -> ()  return }"))
      >>> [has_side_effect(op) for op in view.ops("stablehlo.custom_call")]
      [True, False]
    """
    return "has_side_effect" in op.attributes and ir.BoolAttr(op.attributes["has_side_effect"]).value


def does_more_than_compute(op: ir.Operation) -> bool:
    """Whether an op is one of ``EFFECTS``, or a custom call that has a side effect; its regions are not looked at.

    Args:
      op: any op.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> body = parse("%t = stablehlo.create_token : !stablehlo.token").mlir.body
      >>> does_more_than_compute(body.operations[0].operation)
      True
    """
    return op.name in EFFECTS or has_side_effect(op)


# ---- ops that do more than compute their results: how often and in which order they run is seen outside


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
        """The keys of the functions that contain an op with effects, without and with collectives."""
        functions = list(self.view.functions.values())
        return {collectives: {op_key(function) for function in functions if holds(function)} for collectives, holds in
                ((False, contains_any(MAY_HAVE_EFFECTS, self.view)),
                 (True, contains_any((*MAY_HAVE_EFFECTS, *COLLECTIVES), self.view)))}

    def first(self, ops: Iterable[ir.Operation], *, collectives: bool = False) -> str:
        """The name of the first op with effects among some ops, the ops in them and those that they call.

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
