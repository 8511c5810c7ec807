"""Emits splats, and rebuilds ops with more results."""

from collections.abc import Callable, Collection, Sequence

from hlorewrite.ir import Editor, holds_number, integer_range, ir, terminator
from hlorewrite.ops.reducers import OP_OF_KIND


def splat_constant(editor: Editor, number: ir.Attribute | int, type_: ir.Type, before: ir.Operation) -> ir.Value:
    """A constant filled with one number.

    Args:
      editor: the editor of the module.
      number: an attribute of the element type, or an integer.
      type_: the tensor type.
      before: the op to insert before; its location is used.
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
    """A number after wrap-around in an integer tensor type.

    Args:
      number: the exact result.
      type_: the type.
    """
    values = integer_range(type_)
    return (number - values.start) % (values.stop - values.start) + values.start  # len() ends below 64 bits


def repeated(editor: Editor, value: ir.Value, type_: ir.Type, before: ir.Operation, dims: Sequence[int] = ()
             ) -> ir.Value:
    """A tensor that repeats a scalar, or a value of fewer dimensions.

    Args:
      editor: the editor of the module.
      value: what is repeated.
      type_: the tensor type.
      before: the op to insert before; its location is used.
      dims: the dimensions of the tensor that the value has.
    """
    with editor.context:
        where: ir.Attribute = ir.DenseI64ArrayAttr.get(list(dims))
    return editor.create("stablehlo.broadcast_in_dim", [value], [type_], attributes={"broadcast_dimensions": where},
                         location=before.location, before=before).results[0]


def integer_attribute(editor: Editor, number: int) -> ir.Attribute:
    """A dimension as an attribute of 64 bits.

    Args:
      editor: the editor of the module.
      number: the dimension.
    """
    with editor.context:
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def filled_part(editor: Editor, op: ir.Operation, type_: ir.Type) -> ir.Value:
    """One part of a constant or broadcast value, rebuilt in the part's size; all parts are equal.

    Args:
      editor: the editor of the module.
      op: the ``constant``, ``iota`` or ``broadcast_in_dim``; the new op follows it.
      type_: the type of the part.
    """
    attributes = {name: op.attributes[name] for name in op.attributes}
    if op.name == "stablehlo.constant":
        with editor.context:
            attributes["value"] = ir.DenseElementsAttr.get_splat(
                type_, ir.DenseElementsAttr(op.attributes["value"]).get_splat_value())
    return editor.create(op.name, list(op.operands), [type_], attributes=attributes, location=op.location,
                         at=ir.InsertionPoint.after(op)).results[0]


# ---- the region of a reducing collective


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


# ---- loops and branches with more results than they had


LOOP = "stablehlo.while"


def add_results(editor: Editor, op: ir.Operation, types: Sequence[ir.Type],
                      fill: Callable[[ir.Type, ir.Operation], ir.Value]) -> ir.Operation:
    """Rebuilds a loop or branch with more results.

    Args:
      editor: the editor of the module.
      op: the ``while``, ``case`` or ``if``; it is erased.
      types: types of the new results, which come last.
      fill: makes a value of a type before an op: the initial value of a loop, the result of each branch.

    Returns:
      The new op. The loop passes the added values through unchanged.
    """
    operands = list(op.operands)
    if op.name == LOOP:
        operands += [fill(each, op) for each in types]
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = editor.create(op.name, operands, [*(result.type for result in op.results), *types], attributes=attributes,
                        regions=len(op.regions), location=op.location, before=op)
    for number, (old_region, new_region) in enumerate(zip(op.regions, new.regions, strict=True)):
        block = old_region.blocks[0]
        block.append_to(new_region)
        _extend_block(editor, op.name, new_region.blocks[0], types, fill, is_condition=op.name == LOOP and number == 0)
    for old, replacement in zip(op.results, list(new.results)[:len(op.results)], strict=True):
        editor.replace(old, replacement)
    editor.erase(op)
    return new


def _extend_block(editor: Editor, name: str, block: ir.Block, types: Sequence[ir.Type],
                  fill: Callable[[ir.Type, ir.Operation], ir.Value], is_condition: bool) -> None:
    end = terminator(block)
    if name == LOOP:
        extra: list[ir.Value] = [block.add_argument(each, end.location) for each in types]
    else:
        extra = [fill(each, end) for each in types]
    if is_condition:
        return
    editor.create(end.name, [*end.operands, *extra], [], location=end.location, before=end)
    editor.erase(end)


def divide_barrier(editor: Editor, barrier: ir.Operation, positions: Collection[int]) -> None:
    """Replaces a barrier by two: one holds the operands at some positions, the other one the rest.

    Args:
      editor: the editor of the module.
      barrier: the ``optimization_barrier``.
      positions: some of its positions, not all.
    """
    others = [position for position in range(len(barrier.results)) if position not in positions]
    for group in (sorted(positions), others):
        made = editor.create(barrier.name, [barrier.operands[position] for position in group],
                             [barrier.results[position].type for position in group], location=barrier.location,
                             before=barrier)
        for position, result in zip(group, made.results, strict=True):
            editor.replace(barrier.results[position], result)
    editor.erase(barrier)
