"""Passes that see through the functions in which JAX puts bodies of loops and rows of stacked tensors."""

from collections.abc import Callable

from hlorewrite.ir.binding import ir
from hlorewrite.ir.inline import contains_any, inline_calls, is_private
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import PassContext

ROWS = ("stablehlo.dynamic_update_slice",)
"""What writes rows of stacked tensors."""


def with_inlined(module: Module, ctx: PassContext, names: tuple[str, ...] | None,
                 run: Callable[[Module, View], bool]) -> bool:
    """Runs a rewrite on a copy in which functions that hold some ops are inlined; the module stays if nothing changes.

    Args:
      module: the module; a copy takes its place only when the rewrite changed that.
      ctx: of the pass.
      names: of the ops; None to inline every function.
      run: rewrites a module by its view; returns whether it changed.
    """
    view = ctx.view(module)
    holds = _everything if names is None else contains_any(names, view)
    if not any(is_private(function) and holds(function) for function in view.functions.values()):
        return run(module, view)
    copy = module.clone()
    inlined = ctx.view(copy)
    inline_calls(ctx.editor(copy), _everything if names is None else contains_any(names, inlined))
    if not run(copy, inlined):
        ctx.forget_view()
        return False
    module.mlir = copy.mlir
    ctx.forget_view()
    return True


def _everything(function: ir.Operation) -> bool:
    """Names every function."""
    return True
