"""Whether a custom call does more than compute its results."""

from __future__ import annotations

from hlorewrite.ir.binding import ir


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
