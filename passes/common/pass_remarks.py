"""Remarks of passes that look at one op at a time."""

from hlorewrite.ir.binding import ir
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import PassContext
from hlorewrite.rules.listener import RemarkKind
from hlorewrite.rules.remark_subject import remark_about


def tell(ctx: PassContext, kind: RemarkKind, name: str, sentence: str, view: View, op: ir.Operation,
         advice: str = "") -> None:
    """Emits one remark about an op; ``missed`` only when missed remarks were requested.

    Args:
      ctx: where remarks go.
      kind: what happened.
      name: the pass.
      sentence: why, without a final full stop.
      view: the module.
      op: the op.
      advice: the shortest change that would remove the reason.
    """
    if kind != "missed" or ctx.wants_missed:
        ctx.remark(remark_about(ctx.subject(view, op), kind, name, sentence, advice=advice))
