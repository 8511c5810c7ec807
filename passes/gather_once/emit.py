"""Gathers a value before the loops that read it, and slices the gathered value in them."""

from collections.abc import Sequence

from hlorewrite.ir import Editor, defining_op, ir, tensor_type, with_dimension
from hlorewrite.ops.dims import attributes_for
from hlorewrite.passes.common.emit import integer_attribute, splat_constant
from hlorewrite.passes.common.op_writer import OpWriter
from hlorewrite.passes.gather_once.source import STEPS, GatherSource


def gathered_type(type_: ir.Type, dimension: int, members: int) -> ir.RankedTensorType:
    """The type of a tensor after the shards of a group are concatenated along a dimension."""
    return with_dimension(type_, dimension, ir.RankedTensorType(type_).shape[dimension] * members)


def gather_before(gather: ir.Operation, source: GatherSource, members: int, editor: Editor) -> ir.Value:
    """Emits the all-gather of a whole source before its loops.

    Args:
      gather: an all-gather of the source, whose attributes the new one takes.
      source: the value to gather.
      members: the members of a group.
      editor: the editor of the module.

    Returns:
      The gathered value.
    """
    anchor = source.loops[-1]
    value = source.root
    writer = OpWriter.before(editor, anchor, gather.location)
    for element in source.converts:
        value = writer.make("stablehlo.convert", [value], tensor_type(ir.RankedTensorType(value.type).shape, element))
    attributes = {name: gather.attributes[name] for name in gather.attributes}
    attributes["all_gather_dim"] = integer_attribute(editor, source.dimension)
    return writer.make(gather.name, [value], gathered_type(value.type, source.dimension, members), **attributes)


def read_gathered(gather: ir.Operation, source: GatherSource, members: int, whole: ir.Value, editor: Editor) -> None:
    """``AG(f(w)) = f'(AG(w))``: replaces an all-gather by the same slices of the gathered source.

    Args:
      gather: the all-gather; it is erased, with the ops that it alone reads.
      source: the source of its operand.
      members: the members of a group.
      whole: the gathered source.
      editor: the editor of the module.
    """
    value = whole
    element = ir.RankedTensorType(whole.type).element_type
    for op, dimension in source.steps:
        shape = list(gathered_type(op.results[0].type, dimension, members).shape)
        attributes = attributes_for(op, dimension, shape[dimension])
        value = editor.create(op.name, [value, *_indices(op, dimension, gather, editor)], [tensor_type(shape, element)],
                              attributes=attributes, location=op.location, before=gather).results[0]
    editor.replace(gather.results[0], value)
    _erase_unread(gather, editor)


def _indices(op: ir.Operation, dimension: int, before: ir.Operation, editor: Editor) -> Sequence[ir.Value]:
    """The indices of a slice, with the start of the gathered dimension."""
    indices = list(op.operands)[1:]
    if indices:
        indices[dimension] = splat_constant(editor, 0, indices[dimension].type, before)
    return indices


def _erase_unread(op: ir.Operation, editor: Editor) -> None:
    """Erases an op, and the ops that only it reads."""
    maker: ir.Operation | None = op
    # Ends: each round goes to an operand.
    while maker is not None and (maker is op or maker.name in STEPS):
        before = defining_op(maker.operands[0])
        if not editor.erase_if_dead(maker):
            return
        maker = before
