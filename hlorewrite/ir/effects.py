"""Ops that do more than compute their results from their operands: it matters how often and in which order they run."""

from hlorewrite.ir.binding import ir

EFFECTS = ("stablehlo.send", "stablehlo.recv", "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.rng",
           "stablehlo.create_token", "stablehlo.after_all", "stablehlo.async_start", "stablehlo.async_done",
           "stablehlo.composite")
"""Ops that always count as such; a custom call says it of itself (``has_side_effect``)."""
MAY_HAVE_EFFECTS = ("stablehlo.custom_call", *EFFECTS)
"""The same, and all custom calls, for those who do not ask them."""


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
