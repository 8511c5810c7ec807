"""Inlining of private functions; MLIR's own ``inline`` pass does nothing in jaxlib.

JAX puts the body of a ``scan`` in a function called by ``func.call @closed_call`` and ``jnp.where`` in a function
called by ``func.call @_where``. A call is inlined by cloning the whole function once (C++ keeps the copy consistent)
and moving its ops before the call, so the cost in Python is one step per op of the body.
"""

import re
from collections import Counter
from collections.abc import Callable

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.regions import FUNCTION, around
from hlorewrite.ir.view import View, ancestors, callee_name, nested_ops, symbol_name, terminator
from hlorewrite.util.reachability import postorder

_REFERRING = ("func.call", "stablehlo.custom_call", "stablehlo.composite", "sdy.named_computation",
              "mpmd.fragment_call", "mpmd.call")


def inline_calls(editor: Editor, wanted: Callable[[ir.Operation], bool] = lambda function: True) -> int:
    """Replaces calls of private functions by their bodies, callers first, so that every copied op stays.

    Args:
      editor: the editor of the module.
      wanted: which functions to inline; all private ones by default. Recursive functions are left alone.

    Returns:
      How many calls of the module were inlined. Functions that are not called any more are erased.

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
    callees = _called_names(view)
    callees_first = _callees_first(callees)
    recursive = _recursive_functions(callees, callees_first) | _named_twice(view)
    calls = {name: len(view.calls_of(function)) for name, function in view.functions.items()}
    inlined = {name for name, function in view.functions.items()
               if calls[name] and name not in recursive and _inlinable(function) and wanted(function)}
    if not inlined:
        return 0
    held = {name for op in view.ops(*_REFERRING) if op.name != "func.call" for name in _referred_symbols(op)}
    for name in reversed(callees_first):
        function = view.functions[name]
        left = view.calls_of(function, in_order=False)
        for call in left if name in inlined else ():
            _inline_one(editor, call, function)
        if is_private(function) and name not in held and (name in inlined or not left):
            editor.erase(function)  # before its callees are inlined, which would make it larger first
    erase_dead_functions(editor)
    return sum(calls[name] for name in inlined)


def dissolve_calls(editor: Editor) -> None:
    """Replaces all calls by the bodies of what they call, for readers that count: composites and public functions too.

    Args:
      editor: the editor of a module that is not used for anything else. A public function that nothing calls stays.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> module = parse("func.func @main() -> tensor<f32> { "
      ...                '%0 = stablehlo.composite "my.c" {decomposition = @g} : () -> tensor<f32> '
      ...                "return %0 : tensor<f32> }"
      ...                "func.func private @g() -> tensor<f32> { %0 = stablehlo.constant dense<1.0> : tensor<f32>"
      ...                " return %0 : tensor<f32> }")
      >>> dissolve_calls(Editor(View(module)))
      >>> "composite" in module.text()
      False
    """
    view = editor.view
    for op in view.ops("stablehlo.composite"):
        name = ir.FlatSymbolRefAttr(op.attributes["decomposition"]).value
        if name in view.functions:
            call = editor.create("func.call", list(op.operands), [result.type for result in op.results],
                                 attributes={"callee": ir.FlatSymbolRefAttr.get(name, op.context)},
                                 location=op.location, before=op)
            for result, value in zip(op.results, call.results, strict=True):
                editor.replace(result, value)
            editor.erase(op)
    for name in {callee_name(call) for call in view.ops("func.call")} & view.functions.keys():
        editor.set_attribute(view.functions[name], "sym_visibility", ir.StringAttr.get("private", editor.context))
    inline_calls(editor)


def erase_dead_functions(editor: Editor) -> int:
    """Erases private functions that nothing refers to; returns how many."""
    view, erased = editor.view, 0
    references = Counter(name for op in view.ops(*_REFERRING) for name in _referred_symbols(op))
    dead = [f for name, f in view.functions.items() if is_private(f) and not references[name]]
    # Ends: each round erases a function.
    while dead:
        function = dead.pop()
        released = Counter(name for op in nested_ops(function) if op.name in _REFERRING
                           for name in _referred_symbols(op))
        editor.erase(function)
        erased += 1
        references.subtract(released)
        dead += [f for name in released if not references[name] and (f := view.functions.get(name)) is not None
                 and is_private(f)]
    return erased


def contains_any(names: tuple[str, ...], view: View) -> Callable[[ir.Operation], bool]:
    """A test for functions that contain ops of some names, directly or through the functions they call.

    Args:
      names: full op names.
      view: the view of the module.

    Returns:
      A function from a ``func.func`` to whether it does.
    """
    holders = {op_key(op) for op in around(view.ops(*names), view) if op.name == FUNCTION}
    return lambda function: op_key(function) in holders


def is_private(function: ir.Operation) -> bool:
    """Whether a function can be called only from this module."""
    visibility = "sym_visibility"
    return visibility in function.attributes and ir.StringAttr(function.attributes[visibility]).value == "private"


def _named_twice(view: View) -> set[str]:
    """Names of functions that several nested modules hold: a call names the one of its own module."""
    if all(op.operation.name != "builtin.module" for op in view.module.mlir.body.operations):
        return set()
    names = Counter(symbol_name(op) for op in view.ops("func.func"))
    return {name for name, count in names.items() if count > 1}


def _inlinable(function: ir.Operation) -> bool:
    """Whether a function is one block of this module that returns; ``llvm.unreachable`` and its like do not."""
    blocks = function.regions[0].blocks
    if not is_private(function) or len(blocks) != 1:
        return False
    try:
        return terminator(blocks[0]).name == "func.return"
    except ValueError:  # an op of an unknown dialect ends it
        return False


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


def _called_names(view: View) -> dict[str, list[str]]:
    """Function name -> names of the functions it calls."""
    names: dict[str, list[str]] = {name: [] for name in view.functions}
    for call in view.ops("func.call"):
        owner = next(op for op in ancestors(call) if op.name == "func.func")
        names[symbol_name(owner)].append(callee_name(call))
    return names


def _callees_first(calls: dict[str, list[str]]) -> list[str]:
    return postorder(reversed(calls), lambda name: [each for each in reversed(calls[name]) if each in calls]) or []


def _recursive_functions(calls: dict[str, list[str]], callees_first: list[str]) -> set[str]:
    """The functions that call themselves, directly or through others.

    These are the functions in a cycle of calls: Kosaraju's components (callers first, then against the calls).

    Args:
      calls: function name -> names of the functions it calls.
      callees_first: the names in the order of ``_callees_first``.
    """
    callers: dict[str, list[str]] = {name: [] for name in calls}
    for name, called in calls.items():
        for other in called:
            if other in callers:
                callers[other].append(name)
    recursive = {name for name, called in calls.items() if name in called}
    seen: set[str] = set()
    for root in reversed(callees_first):
        component = [] if root in seen else [root]
        seen.add(root)
        # Ends: a name is added once.
        for name in component:
            fresh = [caller for caller in dict.fromkeys(callers[name]) if caller not in seen]
            seen.update(fresh)
            component += fresh
        if len(component) > 1:
            recursive.update(component)
    return recursive


def _referred_symbols(op: ir.Operation) -> set[str]:
    """The symbols that an op refers to, as far as they may be functions."""
    if op.name == "func.call":
        return {callee_name(op)}
    return {name for attribute in op.attributes for name in _symbols_in(str(op.attributes[attribute]))}


def _symbols_in(text: str) -> set[str]:
    return set(re.findall(r"@([A-Za-z_$.][\w$.-]*)", text))
