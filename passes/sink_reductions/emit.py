"""Moves a reduction into the loop that stacks what it reduces."""

from hlorewrite.ir import Editor, Loop, element_type, ir, tensor_type
from hlorewrite.ops.attributes import constant_attribute
from hlorewrite.passes.common.emit import repeated, splat_constant
from hlorewrite.passes.common.shard_index import scalar_behind
from hlorewrite.passes.common.stacked_rows import row_of
from hlorewrite.passes.sink_reductions.find import Sinking, fills


def sink(sinking: Sinking, editor: Editor) -> ir.Operation:
    """``AR(f(stack_i g_i, t)) = stack_i AR(f(g_i, t[i]))`` for elementwise f.

    The stacked tensor starts as ``t``, whose slices the loop replaces one by one: the two tensors are never live
    together. Other tensors are read slice by slice in place.

    Args:
      sinking: the reduction to move.
      editor: the editor of the module.

    Returns:
      The reduction in the loop.
    """
    loop, update, reduction = Loop(sinking.loop), sinking.stack.update, sinking.reduction
    row = sinking.stack.row
    shape = ir.RankedTensorType(row.type).shape
    buffer = loop.body.arguments[sinking.stack.position]
    value = row
    for step, position in sinking.steps:
        operands = [value if other == position else
                    _row_of(operand, sinking, row, buffer, editor) for other, operand in enumerate(step.operands)]
        attributes = {name: step.attributes[name] for name in step.attributes}
        value = editor.create(step.name, operands, [tensor_type(shape, element_type(step.results[0]))],
                              attributes=attributes, location=step.location, before=update).results[0]
    made = editor.clone_before(reduction, update)
    editor.set_operand(made, 0, value)
    made.results[0].set_type(row.type)
    editor.set_operand(update, 1, made.results[0])
    if sinking.start is not None:
        editor.set_operand(sinking.loop, sinking.stack.position, sinking.start)
    editor.replace(reduction.results[0], sinking.loop.results[sinking.stack.position])
    editor.erase(reduction)
    for step, _ in reversed(sinking.steps):
        editor.erase(step)
    return made


def _row_of(value: ir.Value, sinking: Sinking, row: ir.Value, buffer: ir.Value, editor: Editor) -> ir.Value:
    """The slice of a whole tensor for one iteration."""
    update = sinking.stack.update
    type_ = tensor_type(ir.RankedTensorType(row.type).shape, element_type(value))
    if fills(value):
        return _filled(value, type_, update, editor)
    source = buffer if sinking.start is not None and value == sinking.start else value
    return row_of(source, sinking.stack, editor)


def _filled(value: ir.Value, type_: ir.Type, before: ir.Operation, editor: Editor) -> ir.Value:
    """A slice of a splat."""
    element = scalar_behind(value)
    maker = element.owner
    attribute = None if isinstance(maker, ir.Block) else constant_attribute(maker.operation)
    if attribute is not None:
        return splat_constant(editor, attribute.get_splat_value(), type_, before)
    if ir.RankedTensorType(element.type).rank:
        element = editor.create("stablehlo.reshape", [element], [tensor_type([], element_type(element))],
                                location=before.location, before=before).results[0]
    return repeated(editor, element, type_, before)
