"""Puts the last iteration of a counted loop after it."""

from __future__ import annotations

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.view import terminator, users
from hlorewrite.passes.common.behind_loop import fill_behind, results_behind
from hlorewrite.passes.common.channel_handles import ChannelHandles
from hlorewrite.passes.common.splats import splat_constant
from hlorewrite.spmd.loops import Loop, LoopCounter

PEELED = "hlorewrite.peeled"
"""A unit attribute of loops that a second run leaves alone."""


def peel(loop: Loop, counter: LoopCounter, editor: Editor, channels: ChannelHandles) -> None:
    """``while^m(f)(x) = f(while^(m-1)(f)(x))``: one iteration fewer, and a copy of the body after the loop.

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
    barrier = results_behind(op, editor)
    mapping: dict[ir.Value, ir.Value] = dict(zip(loop.body.arguments, barrier.results, strict=True))
    anchor = barrier
    for inner in [each.operation for each in loop.body.operations][:-1]:
        copy = editor.clone_at(inner, ir.InsertionPoint.after(anchor), mapping)
        mapping.update(zip(inner.results, copy.results, strict=True))
        channels.renew(copy)
        if copy.name == "stablehlo.while":
            _mark(copy, editor)
            fill_behind(copy, barrier, editor)
        anchor = copy
    channels.forget()
    ends = [mapping.get(value) or value for value in terminator(loop.body).operands]
    for uses, end in zip(readers, ends, strict=True):
        for reader, number in uses:
            editor.set_operand(reader, number, end)


def _mark(loop: ir.Operation, editor: Editor) -> None:
    """Says that a loop is done with: its last iteration follows it, or it is part of such an iteration."""
    with loop.context:
        editor.set_attribute(loop, PEELED, ir.UnitAttr.get())


def _lower_bound(counter: LoopCounter, editor: Editor) -> None:
    """``i < bound`` becomes ``i < bound - step``, and so for each other comparison: one iteration fewer."""
    compare, side = counter.compare, 1 - counter.side
    lower = splat_constant(editor, counter.bound - counter.step, compare.operands[side].type, compare)
    editor.set_operand(compare, side, lower)
