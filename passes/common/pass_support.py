"""Remarks of passes that look at one op at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.ir import ALL_REDUCE, Module, View, contains_any, inline_calls, ir, is_private
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.rules.listener import RemarkKind
from hlorewrite.rules.remark_subject import remark_about


def tell(ctx: PassContext, kind: RemarkKind, name: str, sentence: str, view: View, op: ir.Operation,
         *, advice: str = "") -> None:
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


# ---- passes that look at one op of a kind after the other


@dataclass(frozen=True)
class OpByOp(Pass):
    """Base class of passes that rewrite the ops of one name one by one, in the order of the module.

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
        """Rewrites one op and its readers; returns whether anything changed."""
        raise NotImplementedError


# ---- passes that look into the functions that JAX makes of loop bodies and rows of stacked tensors


ROWS = ("stablehlo.dynamic_update_slice",)
"""Ops that write rows of stacked tensors."""


def with_inlined(module: Module, ctx: PassContext, names: tuple[str, ...] | None,
                 run: Callable[[Module, View], bool]) -> bool:
    """Runs a rewrite on a copy with inlined functions that contain some ops; the module stays if nothing changes.

    Args:
      module: the module; the copy replaces it only if the rewrite changed the copy.
      ctx: the context of the pass.
      names: the names of the ops; None to inline every function.
      run: rewrites a module by its view; returns whether it changed.
    """
    view = ctx.view(module)
    holds = _everything if names is None else contains_any(names, view)
    if not any(is_private(function) and holds(function) for function in view.functions.values()):
        return run(module, view)

    def on_inlined(copy: Module, inlined: View) -> bool:
        inline_calls(ctx.editor(copy), _everything if names is None else contains_any(names, inlined))
        return run(copy, inlined)

    return on_copy(module, ctx, on_inlined)


def on_copy(module: Module, ctx: PassContext, run: Callable[[Module, View], bool]) -> bool:
    """Runs a rewrite on a copy of a module; the module stays if the rewrite says that it changed nothing.

    Args:
      module: the module; the copy replaces it otherwise.
      ctx: the context of the pass.
      run: rewrites a module by its view; returns whether the copy is to replace it.
    """
    copy = module.clone()
    if not run(copy, ctx.view(copy)):
        ctx.forget_view()
        return False
    module.mlir = copy.mlir
    ctx.forget_view()
    return True


def _everything(function: ir.Operation) -> bool:
    """Names every function."""
    return True
