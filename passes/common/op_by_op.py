"""Passes that look at one all-reduce after the other."""

from __future__ import annotations

from dataclasses import dataclass

from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import ALL_REDUCE
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import Pass, PassContext


@dataclass(frozen=True)
class EachAllReduce(Pass):
    """Base of passes that rewrite all-reduces one by one, in the order of the module."""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; tells whether it changed."""
        view = ctx.view(module)
        changed = False
        for op in view.ops(ALL_REDUCE.op):
            changed = self._one(op, view, ctx) or changed
        return changed

    def _one(self, op: ir.Operation, view: View, ctx: PassContext) -> bool:
        """Rewrites what hangs on one all-reduce; tells whether it did."""
        raise NotImplementedError
