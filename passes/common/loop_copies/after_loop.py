"""Copies of a loop's ops after it that XLA does not begin before it."""

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.types import element_count, element_type, tensor_bytes
from hlorewrite.ir.view import defining_op, terminator, users
from hlorewrite.ops.constants import constant_attribute
from hlorewrite.passes.common.shard_index import scalar_behind
from hlorewrite.passes.common.splats import repeated, splat_constant


def results_behind(op: ir.Operation, editor: Editor) -> tuple[ir.Operation, list[ir.Value]]:
    """The results of a loop as values that XLA computes nothing from before the loop is over.

    The counter of the last iteration is a constant, and parameters are the same in all. XLA would begin the copy of an
    iteration before the loop, and keep all its activations through it. Values that the body does not read are left out:
    a barrier would have XLA write them to memory.

    Args:
      op: the loop.
      editor: the editor of the module.

    Returns:
      The barrier, and the values, as many as the loop has results.
    """
    body = op.regions[1].blocks[0]
    end = terminator(body)
    values: list[ir.Value] = list(op.results)
    read = [slot for slot, argument in enumerate(body.arguments)
            if end.operands[slot] != argument or any(reader != end for reader, _ in users(argument))]
    barrier = editor.create("stablehlo.optimization_barrier", [values[slot] for slot in read],
                            [values[slot].type for slot in read], location=op.location, at=ir.InsertionPoint.after(op))
    for slot, held in zip(read, barrier.results, strict=True):
        values[slot] = held
    return barrier, values


def fill_behind(copy: ir.Operation, barrier: ir.Operation, editor: Editor) -> None:
    """Buffers that a copied inner loop fills are made after the outer loop.

    A buffer of zeros depends on nothing: XLA would make it before the outer loop and keep it. So the number it is
    filled with passes a barrier together with the smallest result of the outer loop.

    Args:
      copy: the inner loop.
      barrier: of the results of the outer one.
      editor: the editor of the module.
    """
    smallest = min(barrier.results, key=lambda result: tensor_bytes(result.type))
    held: dict[tuple[str, str], ir.Value] = {}
    for position, operand in enumerate(copy.operands):
        number = _filled_with(operand)
        if number is None:
            continue
        key = str(element_type(operand)), str(number)
        if key not in held:
            held[key] = _held(number, element_type(operand), smallest, copy, editor)
        editor.set_operand(copy, position, repeated(editor, held[key], operand.type, copy))


def _filled_with(value: ir.Value) -> ir.Attribute | None:
    """The number all elements of a tensor have; None of scalars, and of tensors that hold different ones."""
    maker = defining_op(scalar_behind(value))
    attribute = constant_attribute(maker) if maker is not None and element_count(value.type) > 1 else None
    return attribute.get_splat_value() if attribute is not None and attribute.is_splat else None


def _held(number: ir.Attribute, element: ir.Type, until: ir.Value, before: ir.Operation, editor: Editor) -> ir.Value:
    """A number that is there only when another value is."""
    with editor.context, ir.Location.unknown():
        scalar = ir.RankedTensorType.get([], element)
    made = splat_constant(editor, number, scalar, before)
    return editor.create("stablehlo.optimization_barrier", [made, until], [scalar, until.type],
                         location=before.location, before=before).results[0]
