"""Collectives that a program starts and awaits itself, and ops that communicate in an unknown form.

A program says so in two ways: ``stablehlo.async_start`` with the op in its region and ``async_done`` (jaxlib 0.12), or
custom calls ``KIND-start`` and ``KIND-done``, whose configuration is JSON in ``async_collective_config``
(``jax._src.lax.parallel``; XLA reads them in ``async_collective_custom_call_rewriter.cc``). Reports and the interpreter
work on a copy in which each runs at once: the values are the same. Passes leave such ops where they are: the program
has said when it sends.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hlorewrite.ir import collectives
from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.frontend import FRONTEND
from hlorewrite.ir.view import View, nested_ops, terminator

CUSTOM_CALL = "stablehlo.custom_call"
ASYNC_START, ASYNC_DONE = "stablehlo.async_start", "stablehlo.async_done"
_TARGET, _CONFIG = "call_target_name", "async_collective_config"
_WRITTEN_IN = (FRONTEND, "backend_config", "mhlo.backend_config")
_START, _DONE = "-start", "-done"
_DIMENSIONS = {
    collectives.ALL_GATHER.kind: {"all_gather_dimension": "all_gather_dim"},
    collectives.REDUCE_SCATTER.kind: {"scatter_dimension": "scatter_dimension"},
    collectives.ALL_TO_ALL.kind: {name: name for name in collectives.ALL_TO_ALL.dimensions},
}
"""For each kind, the names of its dimensions in the configuration, and those of the op's attributes."""
_DEVICE_TO_DEVICE = 1
_PERMUTATIONS = ("permutation", "source_target_pairs")


def started_collective(op: ir.Operation) -> collectives.CollectiveOp | None:
    """The collective that a custom call ``KIND-start`` starts; None for any other op.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> view = View(parse('func.func @f(%a: tensor<f32>) -> tensor<f32> {'
      ...                   '  %0 = stablehlo.custom_call @"all-reduce-start"(%a) : (tensor<f32>) -> tensor<f32>'
      ...                   '  return %0 : tensor<f32> }'))
      >>> started_collective(view.ops("stablehlo.custom_call")[0]).op
      'stablehlo.all_reduce'
    """
    target = _target(op)
    row = collectives.BY_KIND.get(target.removesuffix(_START)) if target.endswith(_START) else None
    return row if row is not None and row.op else None


def started_ops(view: View) -> list[tuple[ir.Operation, str]]:
    """The ops by which a program starts a collective itself, each with the kind it starts."""
    calls = [(op, row.kind) for op in view.ops(CUSTOM_CALL) if (row := started_collective(op)) is not None]
    return [*calls, *((op, collectives.BY_OP[inner.name].kind) for op in view.ops(ASYNC_START)
                      for inner in nested_ops(op) if inner.name in collectives.BY_OP)]


def has_async_pairs(view: View) -> bool:
    """Whether a module starts collectives, or other ops, by itself."""
    return bool(view.ops(ASYNC_START, ASYNC_DONE)) or any(map(_is_half, view.ops(CUSTOM_CALL)))


def communicates_otherwise(view: View) -> bool:
    """Whether a custom call starts a collective, or communicates in a form that is not known."""
    return any(started_collective(op) or unread_communication(op) for op in view.ops(CUSTOM_CALL))


def run_at_once(editor: Editor) -> None:
    """Replaces each start by the op that it runs, and each ``done`` by that op's results.

    Unreadable pairs stay: ``unread_communication`` names it.

    Args:
      editor: the editor of a copy that is read or executed, and not compiled.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> view = View(parse('func.func @f(%a: tensor<2xf32>) -> tensor<8xf32> {'
      ...   '%0 = stablehlo.custom_call @"all-gather-start"(%a) {mhlo.frontend_attributes = {async_collective_config = '
      ...   '"{\\\\22all_gather_dimension\\\\22: 0, \\\\22replica_groups\\\\22: [[0,1,2,3]]}"}} : '
      ...   '(tensor<2xf32>) -> tensor<8xf32>'
      ...   '%1 = stablehlo.custom_call @"all-gather-done"(%0) : (tensor<8xf32>) -> tensor<8xf32>'
      ...   'return %1 : tensor<8xf32> }'))
      >>> run_at_once(Editor(view))
      >>> [op.name for op in view.ops("stablehlo.all_gather", "stablehlo.custom_call")]
      ['stablehlo.all_gather']
    """
    view = editor.view
    for op in view.ops(ASYNC_START):
        _inline_start(editor, op)
    for op in view.ops(CUSTOM_CALL):
        if started_collective(op) is not None:
            _replace_start(editor, op)
    for op in view.ops(CUSTOM_CALL):
        if _is_half(op) and _target(op).endswith(_DONE) and _same_types(op.operands, op.results):
            for old, new in zip(op.results, op.operands, strict=True):
                editor.replace(old, new)
            editor.erase(op)


def unread_communication(op: ir.Operation) -> str:
    """Why an op that seems to communicate is not counted; empty for one that does not, or that is counted.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> view = View(parse('func.func @f(%a: tensor<f32>) { %0 = stablehlo.custom_call @exchange(%a) {mhlo.'
      ...                   'frontend_attributes = {c = "{replica_groups: [[0, 1]]}"}} : (tensor<f32>) -> tensor<f32>'
      ...                   '  return }'))
      >>> unread_communication(view.ops("stablehlo.custom_call")[0])
      'custom call "exchange" names groups of devices in an unknown form'
    """
    if op.name in collectives.COLLECTIVES:
        return ""
    row = started_collective(op)
    if row is not None:
        configured = _configuration(op, row)
        return configured if isinstance(configured, str) else ""
    if any(name in op.attributes for name in collectives.GROUP_ATTRIBUTES):
        return f"{op.name} names groups of devices, and is not known"
    written = " ".join(str(op.attributes[name]) for name in _WRITTEN_IN if name in op.attributes)
    if op.name == CUSTOM_CALL and any(name in written for name in collectives.GROUP_ATTRIBUTES):
        return f'custom call "{_target(op)}" names groups of devices in an unknown form'
    return ""


def _target(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes[_TARGET]).value if op.name == CUSTOM_CALL and _TARGET in op.attributes else ""


def _is_half(op: ir.Operation) -> bool:
    """Whether a custom call starts or awaits a collective."""
    target = _target(op)
    return any(target.endswith(end) and target.removesuffix(end) in collectives.BY_KIND for end in (_START, _DONE))


def _same_types(before: Sequence[ir.Value], after: Sequence[ir.Value]) -> bool:
    return [value.type for value in before] == [value.type for value in after]


# ---- stablehlo.async_start and async_done


def _inline_start(editor: Editor, op: ir.Operation) -> None:
    """Moves the ops of a start before it; one whose future goes elsewhere than to an ``async_done`` stays."""
    readers = [use.owner.operation for use in op.results[0].uses]
    block = op.regions[0].blocks[0]
    if any(reader.name != ASYNC_DONE for reader in readers) or len(block.arguments) != len(op.operands):
        return
    for argument, value in zip(block.arguments, op.operands, strict=True):
        editor.replace(argument, value)
    end = terminator(block)
    values = list(end.operands)
    for inner in list(block.operations)[:-1]:
        editor.move_before(inner.operation, op)
    for reader in readers:
        for old, new in zip(reader.results, values, strict=True):
            editor.replace(old, new)
        editor.erase(reader)
    editor.erase(op)


# ---- custom calls


def _replace_start(editor: Editor, op: ir.Operation) -> None:
    row = started_collective(op)
    assert row is not None
    attributes = _configuration(op, row)
    reducer = _reducer(editor.view, op) if row.reduces else None
    if isinstance(attributes, str) or (row.reduces and reducer is None):
        return
    made = editor.create(row.op, list(op.operands), [result.type for result in op.results], attributes=attributes,
                         regions=int(row.reduces), location=op.location, before=op)
    if reducer is not None:
        _give_region(editor, made, reducer)
    for old, new in zip(op.results, made.results, strict=True):
        editor.replace(old, new)
    editor.erase(op)


def _configuration(op: ir.Operation, row: collectives.CollectiveOp) -> dict[str, ir.Attribute] | str:
    """The attributes of the op that a custom call starts, or why they cannot be read."""
    try:
        read = json.loads(_written_configuration(op))
    except (ValueError, RecursionError):
        read = None
    unread = f'custom call "{_target(op)}" has no {_CONFIG} that can be read'
    if not isinstance(read, dict):
        return unread
    with op.context:
        permutes = row.kind == collectives.COLLECTIVE_PERMUTE.kind
        groups = _table(read, _PERMUTATIONS if permutes else (collectives.REPLICA_GROUPS,))
        if groups is None:
            return unread
        attributes: dict[str, ir.Attribute] = {row.groups: groups}
        i64 = ir.IntegerType.get_signless(64)
        for name, attribute in _DIMENSIONS.get(row.kind, {}).items():
            if not isinstance(read.get(name), int):
                return unread
            attributes[attribute] = ir.IntegerAttr.get(i64, read[name])
        if isinstance(read.get("channel_id"), int):
            attributes[collectives.CHANNEL] = ir.Attribute.parse(
                f"#stablehlo.channel_handle<handle = {read['channel_id']}, type = {_DEVICE_TO_DEVICE}>")
        if read.get(collectives.GLOBAL_IDS) is True and row.global_ids:
            attributes[collectives.GLOBAL_IDS] = ir.UnitAttr.get()
        return attributes


def _written_configuration(op: ir.Operation) -> str:
    if FRONTEND in op.attributes:
        frontend = ir.DictAttr(op.attributes[FRONTEND])
        if _CONFIG in frontend:
            return ir.StringAttr(frontend[_CONFIG]).value
    if "backend_config" in op.attributes and isinstance(op.attributes["backend_config"], ir.StringAttr):
        return ir.StringAttr(op.attributes["backend_config"]).value
    return ""


def _table(read: Mapping[str, Any], names: Sequence[str]) -> ir.Attribute | None:
    """Rows of whole numbers, all of one length, as an attribute."""
    rows = next((read[name] for name in names if name in read), None)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) and row for row in rows):
        return None
    if len({len(row) for row in rows}) > 1 or not all(type(each) is int for row in rows for each in row):
        return None
    return ir.Attribute.parse(f"dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>")


def _reducer(view: View, op: ir.Operation) -> ir.Operation | None:
    """The function that combines two elements; its body becomes the region of the op."""
    called = ir.ArrayAttr(op.attributes["called_computations"]) if "called_computations" in op.attributes else ()
    names = [ir.FlatSymbolRefAttr(each).value for each in called]
    function = view.functions.get(names[0]) if len(names) == 1 else None
    return function if function is not None and len(function.regions[0].blocks) == 1 else None


def _give_region(editor: Editor, made: ir.Operation, function: ir.Operation) -> None:
    """Copies the body of a function into the region of an op; its types are then those of single elements."""
    copy = function.clone(ir.InsertionPoint(function)).operation
    block = copy.regions[0].blocks[0]
    end = terminator(block)
    with made.context:
        ir.Operation.create("stablehlo.return", operands=list(end.operands), loc=end.location,
                            ip=ir.InsertionPoint(end))
    end.erase()
    block.append_to(made.regions[0])
    copy.erase()
    for inner in made.regions[0].blocks[0].operations:
        editor.adopt(inner.operation)
