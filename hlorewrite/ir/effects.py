"""Whether an op does more than compute its results."""

from __future__ import annotations

from hlorewrite.ir.binding import ir

_EFFECTS = frozenset(f"stablehlo.{name}" for name in (
    "infeed", "outfeed", "send", "recv", "rng", "create_token", "after_all"))


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
    """Whether an op moves data in or out, orders such ops, draws random numbers, or has a side effect; its regions
    are not looked at.

    Args:
      op: any op.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> body = parse("%t = stablehlo.create_token : !stablehlo.token").mlir.body
      >>> does_more_than_compute(body.operations[0].operation)
      True
    """
    return op.name in _EFFECTS or has_side_effect(op)
