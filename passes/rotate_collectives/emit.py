"""Rotates a loop: the second half of each iteration runs concurrently with the first half of the next."""

from collections.abc import Mapping, Sequence

from hlorewrite.analysis.loops import constant_integer, counter_step
from hlorewrite.ir import Editor, Loop, defining_op, ir, remap, terminator, users
from hlorewrite.ops.table import FILLINGS
from hlorewrite.passes.common.emit import add_results, splat_constant, wrapped
from hlorewrite.passes.common.loop_copies.copies import ChannelHandles, copy_after
from hlorewrite.passes.common.loop_copies.kept_sources import is_kept
from hlorewrite.passes.rotate_collectives.split import BodySplit


def rotate(op: ir.Operation, split: BodySplit, editor: Editor, channels: ChannelHandles) -> ir.Operation:
    """``(U; V)^m = U; (V; U)^(m-1); V``, which runs the same halves in the same order.

    ``U(0)`` precedes the loop and the last ``V`` after it. Values that ``V`` reads from ``U`` are carried. The
    condition reads what ``U`` made, so the loop ends one iteration earlier.

    Args:
      op: a ``while`` that runs at least once; it is rebuilt.
      split: the halves.
      editor: the editor of the module.
      channels: gives the copies new channel handles.

    Returns:
      The loop.
    """
    loop = Loop(op)
    readers = {slot: users(op.results[slot]) for slot in split.second_slots}
    mapping: dict[ir.Value, ir.Value] = dict(zip(loop.body.arguments, op.operands, strict=True))
    channels.renew(editor.clone_ops(split.first, op, mapping))
    starts = {slot: _second_count(loop, slot, editor) or mapping.get(value) or value
              for slot, value in enumerate(loop.yields)
              if slot not in split.second_slots and value != loop.body.arguments[slot]}
    initial = iter([mapping.get(value, value) for value in split.handed])
    handed = [_slot_or_value(value) for value in split.handed]
    op = add_results(editor, op, [value.type for value in split.handed], lambda _type, _before: next(initial))
    loop = Loop(op)
    for slot, value in starts.items():
        editor.set_operand(op, slot, value)
    values = [loop.body.arguments[each] if isinstance(each, int) else each for each in handed]
    _second_half_first(loop, split, values, editor)
    _last_second_half(loop, split, readers, editor, channels)
    return op


def _second_count(loop: Loop, slot: int, editor: Editor) -> ir.Value | None:
    """The value of a counter in the second iteration, as a constant, so the trip count stays known."""
    first = loop.op.operands[slot]
    start, step = constant_integer(first), counter_step(loop, slot)
    return None if start is None or step is None else splat_constant(
        editor, wrapped(start + step, first.type), first.type, loop.op)


def hoist_filling(loop: Loop, editor: Editor) -> list[ir.Operation]:
    """Moves constants of a body, and the values they fill, before the loop, so both halves may read them.

    Returns:
      The ops, each after those it reads.
    """
    hoisted = []
    for op in [each.operation for each in loop.body.operations]:
        if op.name in FILLINGS and all((maker := defining_op(value)) is not None and maker.block != loop.body
                                       and (maker.name in FILLINGS or is_kept(maker)) for value in op.operands):
            editor.move_before(op, loop.op)
            hoisted.append(op)
    return hoisted


def _slot_or_value(value: ir.Value) -> int | ir.Value:
    """A reference to a value that survives rebuilding the loop: for an argument, its position."""
    return value.arg_number if isinstance(value, ir.BlockArgument) else value


def _given(value: ir.Value, mapping: Mapping[ir.Value, ir.Value]) -> ir.Value:
    return mapping.get(value) or value


def _second_half_first(loop: Loop, split: BodySplit, handed: Sequence[ir.Value], editor: Editor) -> None:
    """Makes the second half read the values of the previous iteration, and precede the first half, which reads what the
    second half makes instead of what an iteration is given."""
    carried = len(loop.op.results) - len(handed)
    given = dict(zip(handed, list(loop.body.arguments)[carried:], strict=True))
    given |= {value: loop.body.arguments[slot] for value, slot in split.carried}
    anchor = split.first[0] if split.first else terminator(loop.body)
    for inner in split.second:
        remap(inner, given)
        editor.move_before(inner, anchor)
    end = terminator(loop.body)
    for slot in split.second_slots:
        editor.set_operand(end, slot, _given(end.operands[slot], given))
    made = {loop.body.arguments[slot]: end.operands[slot] for slot in split.second_slots}
    for inner in split.first:
        remap(inner, made)
    for slot in range(carried):
        if slot not in split.second_slots:
            editor.set_operand(end, slot, _given(end.operands[slot], made))
    for index, value in enumerate(handed):
        editor.set_operand(end, carried + index, value)


def _last_second_half(loop: Loop, split: BodySplit, readers: dict[int, list[tuple[ir.Operation, int]]],
                      editor: Editor, channels: ChannelHandles) -> None:
    """A copy of the second half after the loop, for the last iteration."""
    copy = copy_after(loop, split.second, editor, channels)
    for slot, uses in readers.items():
        end = _given(loop.yields[slot], copy.mapping)
        for reader, number in uses:
            editor.set_operand(reader, number, end)
