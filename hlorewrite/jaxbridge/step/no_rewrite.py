"""``no_rewrite``: collectives a user wants left where they are.

The scope's name travels in the location of every op traced inside it, also through ``grad``. Before the passes run,
such collectives are replaced by a custom call that no rule matches; afterwards they come back unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from hlorewrite.errors import PassFailed
from hlorewrite.ir import COLLECTIVES, Editor, Module, View, ir

F = TypeVar("F", bound=Callable[..., Any])
SCOPE = "hlorewrite.no_rewrite"
_TARGET = "hlorewrite.shielded."


@overload
def no_rewrite() -> Any: ...
@overload
def no_rewrite(fun: F) -> F: ...


def no_rewrite(fun: Any = None) -> Any:
    """Leaves the collectives in a part of a step as they are.

    Args:
      fun: a function whose collectives stay; without it, returns a context manager, which is also a decorator.

    Returns:
      The function, or the context manager.

    Example:
      >>> import jax
      >>> def step(x):
      ...     with no_rewrite():
      ...         return jax.lax.psum(x, "data")
    """
    import jax

    scope = jax.named_scope(SCOPE)
    return scope if fun is None else scope(fun)


@dataclass(frozen=True)
class SetAside:
    """A hidden collective.

    Attributes:
      holder: a module that contains a copy of it, whose operands are arguments there: a copy that read the step's own
        values would still read them after a pass has erased what makes them.
      op: the copy.
    """

    holder: ir.Module
    op: ir.Operation

    @classmethod
    def of(cls, op: ir.Operation) -> SetAside:
        """Copies a collective."""
        with op.context, op.location:
            holder = ir.Module.create()
            types = [operand.type for operand in op.operands]
            attributes = {"sym_name": ir.StringAttr.get("holder"),
                          "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, []))}
            function = ir.Operation.create("func.func", attributes=attributes, regions=1,
                                           ip=ir.InsertionPoint(holder.body))
            block = function.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
            copy = op.clone(ir.InsertionPoint(block)).operation
            for position, argument in enumerate(block.arguments):
                copy.operands[position] = argument
        return cls(holder, copy)


def put_away(view: View) -> list[SetAside]:
    """Hides the collectives of ``no_rewrite`` parts; returns what ``bring_back`` needs."""
    marked = [op for op in view.ops(*COLLECTIVES) if SCOPE in str(op.location)]
    if not marked:
        return []
    editor = Editor(view)
    kept = []
    for number, op in enumerate(marked):
        with view.module.context:
            kept.append(SetAside.of(op))
            name = {"call_target_name": ir.StringAttr.get(f"{_TARGET}{number}")}
        stand_in = editor.create("stablehlo.custom_call", list(op.operands), [r.type for r in op.results],
                                 attributes=name, location=op.location, before=op)
        for old, new in zip(op.results, stand_in.results, strict=True):
            editor.replace(old, new)
        editor.erase(op)
    return kept


def bring_back(module: Module, kept: list[SetAside]) -> None:
    """Puts hidden collectives back in the place of their stand-ins.

    Raises:
      PassFailed: a pass dropped or copied one of them.
    """
    if not kept:
        return
    editor = Editor(View(module))
    by_number: dict[int, ir.Operation] = {}
    for op in editor.view.ops("stablehlo.custom_call"):
        target = ir.StringAttr(op.attributes["call_target_name"]).value
        if target.startswith(_TARGET):
            number = int(target.removeprefix(_TARGET))
            if number in by_number:
                raise PassFailed("a pass copied a collective of a no_rewrite part", hint="leave the pass out")
            by_number[number] = op
    for number, op in by_number.items():
        with module.context:
            again = kept[number].op.clone(ir.InsertionPoint(op)).operation
        for position, operand in enumerate(op.operands):
            again.operands[position] = operand
        editor.adopt(again)
        for old, new in zip(op.results, again.results, strict=True):
            editor.replace(old, new)
        editor.erase(op)
