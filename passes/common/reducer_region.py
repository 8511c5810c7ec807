"""The region of a reducing collective."""

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ops.reducers import OP_OF_KIND


def add_reducer(editor: Editor, op: ir.Operation, kind: str) -> None:
    """Fills the empty region of a reducing collective.

    Args:
      editor: the editor of the module.
      op: an all-reduce or reduce-scatter; its operands have one element type.
      kind: the kind of reduction.
    """
    with editor.context, op.location:
        scalar = ir.RankedTensorType.get([], ir.RankedTensorType(op.operands[0].type).element_type)
        block = op.regions[0].blocks.append(scalar, scalar, arg_locs=[op.location, op.location])
    combined = editor.create(OP_OF_KIND[kind], list(block.arguments), [scalar], location=op.location, at_end=block)
    editor.create("stablehlo.return", [combined.results[0]], [], location=op.location, at_end=block)
