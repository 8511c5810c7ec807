"""Puts the last iteration of a counted loop behind it."""

from __future__ import annotations

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.view import defining_op, terminator, users
from hlorewrite.passes.common.channel_handles import ChannelHandles
from hlorewrite.passes.common.shard_index import scalar_behind
from hlorewrite.spmd.constants import constant_attribute
from hlorewrite.spmd.loops import Counter, Loop
from hlorewrite.spmd.types import element_count, element_type, tensor_bytes

PEELED = "hlorewrite.peeled"
"""A unit attribute of loops that a second run leaves alone."""


def peel(loop: Loop, counter: Counter, editor: Editor, channels: ChannelHandles) -> None:
    """``while^m(f)(x) = f(while^(m-1)(f)(x))``: one iteration fewer, and a copy of the body behind the loop.

    Args:
      loop: a loop of two iterations or more.
      counter: its counter.
      editor: the editor of the module.
      channels: gives the copy's collectives handles of their own.
    """
    op = loop.op
    readers = [users(result) for result in op.results]
    _lower_bound(counter, editor)
    _mark(op, editor)
    barrier = _barrier(op, editor)
    mapping: dict[ir.Value, ir.Value] = dict(zip(loop.body.arguments, barrier.results, strict=True))
    anchor = barrier
    for inner in [each.operation for each in loop.body.operations][:-1]:
        copy = editor.clone_at(inner, ir.InsertionPoint.after(anchor), mapping)
        mapping.update(zip(inner.results, copy.results, strict=True))
        channels.renew(copy)
        if copy.name == "stablehlo.while":
            _mark(copy, editor)
            _fill_behind(copy, barrier, editor)
        anchor = copy
    channels.forget()
    ends = [mapping.get(value) or value for value in terminator(loop.body).operands]
    for uses, end in zip(readers, ends, strict=True):
        for reader, number in uses:
            editor.set_operand(reader, number, end)


def _mark(loop: ir.Operation, editor: Editor) -> None:
    """Says that a loop is done with: its last iteration stands behind it, or it is part of such an iteration."""
    with loop.context:
        editor.set_attribute(loop, PEELED, ir.UnitAttr.get())


def _lower_bound(counter: Counter, editor: Editor) -> None:
    """``i < bound`` becomes ``i < bound - step``, and so for each other comparison: one iteration fewer."""
    compare = counter.compare
    type_ = compare.operands[1 - counter.side].type
    with editor.context:
        number = ir.IntegerAttr.get(ir.RankedTensorType(type_).element_type, counter.bound - counter.step)
        value = ir.DenseElementsAttr.get_splat(type_, number)
    lower = editor.create("stablehlo.constant", [], [type_], attributes={"value": value}, location=compare.location,
                          before=compare)
    editor.set_operand(compare, 1 - counter.side, lower.results[0])


# ---- the copy behind the loop, and not only in the order of the program


def _barrier(op: ir.Operation, editor: Editor) -> ir.Operation:
    """The results of a loop as values that XLA computes nothing from before the loop is over.

    The counter of the last iteration is a constant, and parameters are the same in all. XLA would begin the copy in
    front of the loop, and keep all its activations through it.
    """
    return editor.create("stablehlo.optimization_barrier", list(op.results), [result.type for result in op.results],
                         location=op.location, at=ir.InsertionPoint.after(op))


def _fill_behind(copy: ir.Operation, barrier: ir.Operation, editor: Editor) -> None:
    """Buffers that an inner loop of the copy fills are made behind the outer loop.

    A buffer of zeros depends on nothing: XLA would make it in front of the outer loop and keep it. So the number it is
    filled with passes a barrier together with the smallest result of the outer loop.
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
        with editor.context:
            dims: ir.Attribute = ir.DenseI64ArrayAttr.get([])
        filled = editor.create("stablehlo.broadcast_in_dim", [held[key]], [operand.type], location=copy.location,
                               attributes={"broadcast_dimensions": dims}, before=copy)
        editor.set_operand(copy, position, filled.results[0])


def _filled_with(value: ir.Value) -> ir.Attribute | None:
    """The number all elements of a tensor have; None of scalars, and of tensors that hold different ones."""
    maker = defining_op(scalar_behind(value))
    attribute = constant_attribute(maker) if maker is not None and element_count(value.type) > 1 else None
    return attribute.get_splat_value() if attribute is not None and attribute.is_splat else None


def _held(number: ir.Attribute, element: ir.Type, until: ir.Value, before: ir.Operation, editor: Editor) -> ir.Value:
    """A number that is there only when another value is."""
    with editor.context, ir.Location.unknown():
        scalar = ir.RankedTensorType.get([], element)
        value = ir.DenseElementsAttr.get_splat(scalar, number)
    made = editor.create("stablehlo.constant", [], [scalar], attributes={"value": value}, location=before.location,
                         before=before)
    return editor.create("stablehlo.optimization_barrier", [made.results[0], until], [scalar, until.type],
                         location=before.location, before=before).results[0]
