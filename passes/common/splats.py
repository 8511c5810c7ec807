"""Tensors that hold one number everywhere."""

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.types import holds_number, integer_range


def splat_constant(editor: Editor, number: ir.Attribute | int, type_: ir.Type, before: ir.Operation) -> ir.Value:
    """A constant filled with one number.

    Args:
      editor: the editor of the module.
      number: an attribute of the element type, or an integer.
      type_: the tensor type.
      before: the op it is put before; its location is taken.
    """
    with editor.context, before.location:
        if isinstance(number, int):
            if not holds_number(type_, number):  # MLIR would take other bits
                raise ValueError(f"{type_} holds no {number}")
            number = ir.IntegerAttr.get(ir.RankedTensorType(type_).element_type, number)
        value = ir.DenseElementsAttr.get_splat(type_, number)
    return editor.create("stablehlo.constant", [], [type_], attributes={"value": value}, location=before.location,
                         before=before).results[0]


def wrapped(number: int, type_: ir.Type) -> int:
    """What arithmetic of an integer tensor type makes of a number: it goes on at the other end of the type.

    Args:
      number: the exact result.
      type_: the type.
    """
    values = integer_range(type_)
    return (number - values.start) % len(values) + values.start


def repeated(editor: Editor, scalar: ir.Value, type_: ir.Type, before: ir.Operation) -> ir.Value:
    """A tensor that repeats a scalar.

    Args:
      editor: the editor of the module.
      scalar: a tensor without dimensions.
      type_: the tensor type.
      before: the op it is put before; its location is taken.
    """
    with editor.context:
        dims: ir.Attribute = ir.DenseI64ArrayAttr.get([])
    return editor.create("stablehlo.broadcast_in_dim", [scalar], [type_], attributes={"broadcast_dimensions": dims},
                         location=before.location, before=before).results[0]
