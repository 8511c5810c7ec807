"""Ops that do more than compute their results: how often and in which order they run is seen outside."""

from __future__ import annotations

from collections.abc import Iterable

from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import COLLECTIVES
from hlorewrite.ir.inline import contains_any
from hlorewrite.ir.view import View, nested_ops
from hlorewrite.passes.common.block_graph import EFFECTS

_PURE = ("stablehlo.", "chlo.", "func.call")


def op_with_effects(ops: Iterable[ir.Operation], view: View, *, collectives: bool = False) -> str:
    """The name of the first op with effects among some ops, what they hold and what they call; empty when there is none.

    Args:
      ops: the ops.
      view: the module.
      collectives: whether a collective counts too, since all devices of its group have to run it equally often.
    """
    counted = (*EFFECTS, *(COLLECTIVES if collectives else ()))
    holds = contains_any(counted, view)
    for inner in (inner for op in ops for inner in nested_ops(op)):
        if inner.name in counted or not inner.name.startswith(_PURE):
            return inner.name
        callee = view.callee(inner) if inner.name == "func.call" else None
        if callee is not None and holds(callee):
            return inner.name
    return ""
