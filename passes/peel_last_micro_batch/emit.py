"""Moves the last iteration of a loop after it."""


from hlorewrite.analysis.loops import LoopCounter
from hlorewrite.ir import WHILE, Editor, Loop, block_ops, ir, users
from hlorewrite.passes.common.emit import splat_constant
from hlorewrite.passes.common.loop_copies.copies import ChannelHandles, body_in_place, copy_after
from hlorewrite.passes.common.loop_copies.rematerialize_splats import fill_again, keep_small_sources, read_outside
from hlorewrite.passes.peel_last_micro_batch.next_condition import NextCondition, end_one_earlier, first_predicate

PEELED = "hlorewrite.peeled"
"""A unit attribute of loops that a second run leaves alone."""


def peel(loop: Loop, counting: LoopCounter | NextCondition, editor: Editor, channels: ChannelHandles) -> None:
    """``while^m(f)(x) = f(while^(m-1)(f)(x))``: one iteration fewer, and a copy of the body after the loop.

    If m is a run-time value that may be zero, the copy always runs and ``select`` picks its results: a branch would
    delay the reductions after it until it ends.

    Args:
      loop: a loop with two iterations or more; of any number when it is not counted by constants.
      counting: its counter, or how it counts.
      editor: the editor of the module.
      channels: gives the copy's collectives new channel handles.
    """
    keep_small_sources(loop, editor)
    fillings = read_outside(loop, editor)
    readers = [users(result) for result in loop.op.results]
    runs = None if isinstance(counting, LoopCounter) else first_predicate(loop, editor)
    if isinstance(counting, LoopCounter):
        _lower_bound(counting, editor)
    else:
        end_one_earlier(loop, counting, editor)
    _mark(loop.op, editor)
    copy = copy_after(loop, block_ops(loop.body), editor, channels)
    for inner in copy.ops:
        if inner.name == WHILE:
            _mark(inner, editor)
    anchor = copy.ops[-1] if copy.ops else copy.barrier
    for uses, value, before in zip(readers, loop.yields, copy.results, strict=True):
        end = copy.mapping.get(value) or value
        if runs is not None and uses and end != before:
            anchor = editor.create("stablehlo.select", [runs, end, before], [before.type], location=anchor.location,
                                   at=ir.InsertionPoint.after(anchor))
            end = anchor.results[0]
        for reader, number in uses:
            editor.set_operand(reader, number, end)
    fill_again(loop.op, fillings, editor)


def inline_once(loop: Loop, editor: Editor) -> None:
    """``while^1(f)(x) = f(x)``: the body takes the place of a loop that runs once.

    Args:
      loop: the loop; it is erased.
      editor: the editor of the module.
    """
    for inner in body_in_place(loop, editor):
        if inner.name == "stablehlo.while":
            _mark(inner, editor)


def _mark(loop: ir.Operation, editor: Editor) -> None:
    """Marks a loop as done: its last iteration follows it, or it is part of such an iteration."""
    with loop.context:
        editor.set_attribute(loop, PEELED, ir.UnitAttr.get())


def _lower_bound(counter: LoopCounter, editor: Editor) -> None:
    """``i < bound`` becomes ``i < bound - step``, likewise for other comparisons: one iteration fewer."""
    compare, side = counter.compare, 1 - counter.side
    lower = splat_constant(editor, counter.bound - counter.step, compare.operands[side].type, compare)
    editor.set_operand(compare, side, lower)
