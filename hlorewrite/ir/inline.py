"""Inlining of private functions; MLIR's own ``inline`` pass does nothing in jaxlib.

JAX puts the body of a ``scan`` behind ``func.call @closed_call`` and ``jnp.where`` behind ``func.call @_where``. A call
is inlined by cloning the whole function once (C++ keeps the copy consistent) and moving its ops in front of the call,
so the cost in Python is one step per op of the body.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.view import View, ancestors, symbol_name, terminator


def inline_calls(editor: Editor, wanted: Callable[[ir.Operation], bool] = lambda function: True) -> int:
    """Replaces calls of private functions by their bodies, innermost functions first.

    Args:
      editor: the editor of the module.
      wanted: which functions to inline; all private ones by default. Recursive functions are left alone.

    Returns:
      How many calls were inlined. Functions nobody calls any more are erased.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> module = parse("func.func @main() -> tensor<f32> { %0 = func.call @g() : () -> tensor<f32>"
      ...                " return %0 : tensor<f32> }"
      ...                "func.func private @g() -> tensor<f32> { %0 = stablehlo.constant dense<1.0> : tensor<f32>"
      ...                " return %0 : tensor<f32> }")
      >>> inline_calls(Editor(View(module)))
      1
      >>> "call" in module.text()
      False
    """
    view = editor.view
    recursive = _recursive_functions(editor)
    count = 0
    for name in _callees_first(editor):
        function = view.functions.get(name)
        if function is None or name in recursive or not _inlinable(function) or not wanted(function):
            continue
        for call in view.calls_of(function):
            _inline_one(editor, call, function)
            count += 1
    if count:
        erase_dead_functions(editor)
    return count


def erase_dead_functions(editor: Editor) -> int:
    """Erases private functions that nothing refers to; returns how many."""
    erased = 0
    # Ends: each round erases a function.
    while True:
        referred = _referred_symbols(editor)
        dead = [f for name, f in editor.view.functions.items() if is_private(f) and name not in referred]
        if not dead:
            return erased
        for function in dead:
            editor.erase(function)
            erased += 1


def contains_any(names: tuple[str, ...], view: View) -> Callable[[ir.Operation], bool]:
    """A test for functions that hold ops of some names, directly or through the functions they call.

    Args:
      names: full op names.
      view: the view of the module.

    Returns:
      A function from a ``func.func`` to whether it does.
    """
    holders = {op_key(parent) for op in view.ops(*names) for parent in ancestors(op) if parent.name == "func.func"}
    calls = view.ops("func.call")
    # Ends: each round adds a function, of which there are finitely many.
    while True:
        callers = set()
        for call in calls:
            callee = view.callee(call)
            if callee is not None and op_key(callee) in holders:
                callers |= {op_key(parent) for parent in ancestors(call) if parent.name == "func.func"}
        if callers <= holders:
            return lambda function: op_key(function) in holders
        holders |= callers


def is_private(function: ir.Operation) -> bool:
    """Whether a function can be called from this module only."""
    visibility = "sym_visibility"
    return visibility in function.attributes and ir.StringAttr(function.attributes[visibility]).value == "private"


def _inlinable(function: ir.Operation) -> bool:
    return is_private(function) and len(function.regions[0].blocks) == 1


def _inline_one(editor: Editor, call: ir.Operation, function: ir.Operation) -> None:
    copy = function.clone().operation
    block = copy.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    end = terminator(block)
    returned = list(end.operands)
    for op in list(block.operations):
        if op.operation == end:
            break
        op.operation.move_before(call)
        editor.adopt(op.operation)
    for result, value in zip(call.results, returned, strict=True):
        editor.replace(result, value)
    editor.erase(call)
    copy.erase()


def _called_names(editor: Editor) -> dict[str, list[str]]:
    """Function name -> names of the functions it calls."""
    names: dict[str, list[str]] = {name: [] for name in editor.view.functions}
    for call in editor.view.ops("func.call"):
        owner = next(op for op in ancestors(call) if op.name == "func.func")
        names[symbol_name(owner)].append(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
    return names


def _callees_first(editor: Editor) -> list[str]:
    calls, order, seen = _called_names(editor), [], set()
    for root in calls:
        stack = [(root, iter(calls[root]))]
        if root in seen:
            continue
        seen.add(root)
        # Ends: a name is pushed once.
        while stack:
            name, rest = stack[-1]
            following = next((n for n in rest if n in calls and n not in seen), None)
            if following is None:
                order.append(name)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(calls[following])))
    return order


def _recursive_functions(editor: Editor) -> set[str]:
    calls = _called_names(editor)

    def reaches_itself(name: str) -> bool:
        seen, pending = set(), list(calls[name])
        # Ends: the calls of a name are added once.
        while pending:
            current = pending.pop()
            if current == name:
                return True
            if current not in seen and current in calls:
                seen.add(current)
                pending += calls[current]
        return False

    return {name for name in calls if reaches_itself(name)}


def _referred_symbols(editor: Editor) -> set[str]:
    """Every symbol some op outside its own definition refers to (calls, custom calls, composites)."""
    referred = {ir.FlatSymbolRefAttr(call.attributes["callee"]).value for call in editor.view.ops("func.call")}
    for name in ("stablehlo.custom_call", "stablehlo.composite", "sdy.named_computation", "mpmd.fragment_call",
                 "mpmd.call"):
        for op in editor.view.ops(name):
            for attribute in op.attributes:
                referred.update(_symbols_in(str(op.attributes[attribute])))
    return referred


def _symbols_in(text: str) -> set[str]:
    return set(re.findall(r"@([A-Za-z_$.][\w$.-]*)", text))
