"""Passes that look at one op of a kind after the other."""

from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import ALL_REDUCE
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import Pass, PassContext


@dataclass(frozen=True)
class OpByOp(Pass):
    """Base of passes that rewrite the ops of one name one by one, in the order of the module.

    Attributes:
      op_name: the name; all-reduces by default.
    """

    op_name: ClassVar[str] = ALL_REDUCE.op

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view = ctx.view(module)
        changed = False
        for op in view.ops(self.op_name):
            changed = self._one(op, view, ctx) or changed
        return changed

    def _one(self, op: ir.Operation, view: View, ctx: PassContext) -> bool:
        """Rewrites what depends on one op; returns whether it did."""
        raise NotImplementedError
