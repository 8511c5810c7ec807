"""Passes that see through the small functions in which JAX writes rows of stacked tensors."""

from __future__ import annotations

from collections.abc import Callable

from hlorewrite.ir.inline import contains_any, inline_calls
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import PassContext

_STACKS = "stablehlo.dynamic_update_slice"


def with_rows_inlined(module: Module, ctx: PassContext, run: Callable[[Module, View], bool]) -> bool:
    """Runs a rewrite on a copy in which functions that write rows are inlined; the module stays if it changes nothing.

    Args:
      module: the module; a copy takes its place only when the rewrite changed that.
      ctx: of the pass.
      run: rewrites a module by its view; tells whether it changed.
    """
    view = ctx.view(module)
    holds = contains_any((_STACKS,), view)
    if not any(holds(function) for function in view.functions.values() if view.calls_of(function)):
        return run(module, view)
    copy = module.clone()
    inlined = ctx.view(copy)
    inline_calls(ctx.editor(copy), contains_any((_STACKS,), inlined))
    if not run(copy, inlined):
        ctx.forget_view()
        return False
    module.mlir = copy.mlir
    ctx.forget_view()
    return True
