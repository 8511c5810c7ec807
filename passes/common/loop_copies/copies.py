"""Copies a loop's body after the loop, with barriers so XLA does not start it early, or in place of the loop."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlorewrite.ir import CHANNEL, WHILE, Editor, Loop, channel_number, ir, renumbered
from hlorewrite.ir.types import element_count, element_type, tensor_bytes
from hlorewrite.ir.view import View, block_ops, defining_op, nested_ops, terminator, users
from hlorewrite.ops.attributes import constant_attribute
from hlorewrite.passes.common.emit import repeated, splat_constant
from hlorewrite.passes.common.shard_index import scalar_behind


class ChannelHandles:
    """Unused channel handles of a module; equal handles stay equal in a copy, as send and recv require.

    Args:
      view: the module.
      editor: its editor.
    """

    def __init__(self, view: View, editor: Editor) -> None:
        self.editor = editor
        self._next = 1 + max((channel_number(op) for op in nested_ops(view.module.operation)), default=0)

    def renew(self, copies: Iterable[ir.Operation]) -> None:
        """Gives the ops of one copy, and those inside them, new channel handles."""
        renewed: dict[ir.Attribute, ir.Attribute] = {}
        for op in (inner for copy in copies for inner in nested_ops(copy)):
            if channel_number(op) == 0:
                continue
            old = op.attributes[CHANNEL]
            if old not in renewed:
                renewed[old] = renumbered(op, self._next)
                self._next += 1
            self.editor.set_attribute(op, CHANNEL, renewed[old])


@dataclass(frozen=True)
class LoopCopy:
    """A copy of a body's ops after the loop.

    Attributes:
      barrier: the barrier that the loop's results pass first.
      results: the results of the loop as the copy reads them, as many as the loop has.
      ops: the copy.
      mapping: values of the body to those of the copy.
    """

    barrier: ir.Operation
    results: list[ir.Value]
    ops: list[ir.Operation]
    mapping: dict[ir.Value, ir.Value]


def copy_after(loop: Loop, ops: Sequence[ir.Operation], editor: Editor, channels: ChannelHandles) -> LoopCopy:
    """Copies ops of a body after the loop, for one more iteration or the remainder of one.

    Args:
      loop: the loop.
      ops: the ops of its body, in order.
      editor: the editor of the module.
      channels: gives the collectives of the copy new channel handles.
    """
    barrier, results = _results_after(loop.op, editor)
    mapping: dict[ir.Value, ir.Value] = dict(zip(loop.body.arguments, results, strict=True))
    copies = editor.clone_ops(ops, barrier, mapping, after=True)
    channels.renew(copies)
    for copy in copies:
        if copy.name == WHILE:
            _fill_after(copy, barrier, editor)
    return LoopCopy(barrier, results, copies, mapping)


def body_in_place(loop: Loop, editor: Editor) -> list[ir.Operation]:
    """Moves the ops of a body before its loop, and erases the loop.

    Args:
      loop: the loop; it runs once.
      editor: the editor of the module.

    Returns:
      The ops that were moved.
    """
    for argument, operand in zip(loop.body.arguments, loop.op.operands, strict=True):
        editor.replace(argument, operand)
    ends = list(loop.yields)
    moved = block_ops(loop.body)
    for inner in moved:
        editor.move_before(inner, loop.op)
    for result, end in zip(loop.op.results, ends, strict=True):
        editor.replace(result, end)
    editor.erase(loop.op)
    return moved


def _results_after(op: ir.Operation, editor: Editor) -> tuple[ir.Operation, list[ir.Value]]:
    """The results of a loop behind a barrier, so XLA computes nothing from them before the loop ends.

    The counter of the last iteration is a constant, and parameters are loop-invariant, so XLA would otherwise start the
    copy before the loop and keep its activations through it. Values that the body does not read are left out, since a
    barrier would make XLA write them to memory.

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


def _fill_after(copy: ir.Operation, barrier: ir.Operation, editor: Editor) -> None:
    """Makes the buffers that a copied inner loop fills after the outer loop.

    A buffer of zeros depends on nothing: XLA would make it before the outer loop and keep it. So its fill value passes
    a barrier together with the smallest result of the outer loop.

    Args:
      copy: the inner loop.
      barrier: the barrier of the results of the outer one.
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
    """The number that fills a tensor; None for scalars, and for tensors of different numbers."""
    maker = defining_op(scalar_behind(value))
    attribute = constant_attribute(maker) if maker is not None and element_count(value.type) > 1 else None
    return attribute.get_splat_value() if attribute is not None and attribute.is_splat else None


def _held(number: ir.Attribute, element: ir.Type, until: ir.Value, before: ir.Operation, editor: Editor) -> ir.Value:
    """A number that is available only once another value is."""
    with editor.context, ir.Location.unknown():
        scalar = ir.RankedTensorType.get([], element)
    made = splat_constant(editor, number, scalar, before)
    return editor.create("stablehlo.optimization_barrier", [made, until], [scalar, until.type],
                         location=before.location, before=before).results[0]
