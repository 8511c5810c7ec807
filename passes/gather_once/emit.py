"""Gathers a value before the loops that read it, and slices what is gathered in them."""

from collections.abc import Sequence

from hlorewrite.ir import Editor, defining_op, ir, tensor_type, with_dimension
from hlorewrite.ops.dims import attributes_for
from hlorewrite.passes.common.emit import splat_constant
from hlorewrite.passes.gather_once.source import STEPS, GatherSource


def gathered_type(type_: ir.Type, dimension: int, members: int) -> ir.RankedTensorType:
    """The type of a tensor once the shards of a group are put together along a dimension."""
    return with_dimension(type_, dimension, ir.RankedTensorType(type_).shape[dimension] * members)


def gather_before(gather: ir.Operation, source: GatherSource, members: int, editor: Editor) -> ir.Value:
    """Puts the all-gather of a whole source before its loops.

    Args:
      gather: an all-gather of the source, whose attributes are taken.
      source: what to gather.
      members: of a group.
      editor: the editor of the module.

    Returns:
      What is gathered.
    """
    anchor = source.loops[-1]
    value = source.root
    with editor.context:
        for element in source.converts:
            type_ = tensor_type(ir.RankedTensorType(value.type).shape, element)
            value = editor.create("stablehlo.convert", [value], [type_], location=gather.location,
                                  before=anchor).results[0]
        attributes = {name: gather.attributes[name] for name in gather.attributes}
        attributes["all_gather_dim"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), source.dimension)
        result = gathered_type(value.type, source.dimension, members)
    return editor.create(gather.name, [value], [result], attributes=attributes, location=gather.location,
                         before=anchor).results[0]


def read_gathered(gather: ir.Operation, source: GatherSource, members: int, whole: ir.Value, editor: Editor) -> None:
    """``AG(f(w)) = f'(AG(w))``: an all-gather gives way to the same slices of what was gathered before.

    Args:
      gather: the all-gather; it is erased, and what it alone reads.
      source: of its operand.
      members: of a group.
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
    """Of a slice: the same, and the start of the dimension that is gathered."""
    indices = list(op.operands)[1:]
    if indices:
        indices[dimension] = splat_constant(editor, 0, indices[dimension].type, before)
    return indices


def _erase_unread(op: ir.Operation, editor: Editor) -> None:
    """Erases an op, and what it was made from by steps that only it reads."""
    maker: ir.Operation | None = op
    # Ends: each round goes to an operand.
    while maker is not None and (maker is op or maker.name in STEPS):
        before = defining_op(maker.operands[0])
        if not editor.erase_if_dead(maker):
            return
        maker = before
