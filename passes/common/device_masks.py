"""Small values that differ between devices: masks and table entries, looked up by the device's id."""

from collections.abc import Iterable, Sequence

import numpy as np

from hlorewrite.ir import Editor, ir
from hlorewrite.passes.common.emit import splat_constant


def device_mask(editor: Editor, devices: Iterable[int], count: int, before: ir.Operation,
                id_op: str = "stablehlo.partition_id") -> ir.Value:
    """A boolean scalar that is true on some devices.

    Args:
      editor: the editor of the module.
      devices: the devices on which it is true.
      count: how many devices there are.
      before: the op it is put before.
      id_op: ``stablehlo.partition_id`` or ``stablehlo.replica_id``.

    Returns:
      A ``tensor<i1>``.
    """
    chosen = sorted(set(devices))
    if len(chosen) == 1:
        return compare(editor, "EQ", own_id(editor, before, id_op), chosen[0], before)
    table = [int(device in chosen) for device in range(count)]
    return compare(editor, "NE", lookup(editor, table, before, id_op), 0, before)


def own_id(editor: Editor, before: ir.Operation, id_op: str = "stablehlo.partition_id") -> ir.Value:
    """The device's id as a ``tensor<ui32>``."""
    return editor.create(id_op, [], [_tensor(editor, [], "ui32")], location=before.location, before=before).results[0]


def lookup(editor: Editor, table: Sequence[int], before: ir.Operation,
           id_op: str = "stablehlo.partition_id") -> ir.Value:
    """The entry of a table for each device, as a ``tensor<ui32>``."""
    with editor.context:
        element = _tensor(editor, [], "ui32").element_type
        values = ir.DenseElementsAttr.get(np.array(table, np.uint32), type=element)  # pyright: ignore
        sizes = ir.DenseI64ArrayAttr.get([1])
    constant = editor.create("stablehlo.constant", [], [_tensor(editor, [len(table)], "ui32")],
                             attributes={"value": values}, location=before.location, before=before).results[0]
    entry = editor.create("stablehlo.dynamic_slice", [constant, own_id(editor, before, id_op)],
                          [_tensor(editor, [1], "ui32")], attributes={"slice_sizes": sizes},
                          location=before.location, before=before).results[0]
    return editor.create("stablehlo.reshape", [entry], [_tensor(editor, [], "ui32")], location=before.location,
                         before=before).results[0]


def compare(editor: Editor, direction: str, value: ir.Value, number: int, before: ir.Operation) -> ir.Value:
    """Compares an unsigned scalar with a number."""
    with editor.context, before.location:
        how = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
        kind = ir.Attribute.parse("#stablehlo<comparison_type UNSIGNED>")
    other = splat_constant(editor, number, value.type, before)
    return editor.create("stablehlo.compare", [value, other], [_tensor(editor, [], "i1")],
                         attributes={"comparison_direction": how, "compare_type": kind}, location=before.location,
                         before=before).results[0]


def zeros_like(editor: Editor, type_: ir.Type, before: ir.Operation) -> ir.Value:
    """Zeros of a type, as a broadcast scalar constant: a dense constant would be as large as the value."""
    tensor = ir.RankedTensorType(type_)
    if isinstance(tensor.element_type, ir.ComplexType):  # MLIR's Python bindings cannot hold complex constants
        real = _tensor(editor, list(tensor.shape), str(tensor.element_type.element_type))
        part = zeros_like(editor, real, before)
        return editor.create("stablehlo.complex", [part, part], [type_], location=before.location,
                             before=before).results[0]
    element = str(tensor.element_type)
    with editor.context, before.location:
        scalar = ir.RankedTensorType.get([], tensor.element_type)
        text = "false" if element == "i1" else "0" if element.lstrip("ui").isdigit() else "0.0"
        value = ir.Attribute.parse(f"dense<{text}> : {scalar}")
        dims = ir.DenseI64ArrayAttr.get([])
    zero = editor.create("stablehlo.constant", [], [scalar], attributes={"value": value}, location=before.location,
                         before=before).results[0]
    return editor.create("stablehlo.broadcast_in_dim", [zero], [type_], attributes={"broadcast_dimensions": dims},
                         location=before.location, before=before).results[0]


def _tensor(editor: Editor, shape: list[int], element: str) -> ir.RankedTensorType:
    with editor.context, ir.Location.unknown():
        return ir.RankedTensorType.get(shape, ir.Type.parse(element))
