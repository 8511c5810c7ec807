"""Cuts loops over layers at stage boundaries: a loop of L layers becomes a loop for each stage, with marks between."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.location import op_name
from hlorewrite.ir.view import View, defining_op, nested_ops, users
from hlorewrite.passes.common.broadcasts.emit import static_slice
from hlorewrite.passes.common.device_masks import zeros_like
from hlorewrite.passes.common.splats import splat_constant
from hlorewrite.passes.split_stages.remat import RECOMPUTED
from hlorewrite.passes.split_stages.stacks.layer_loops import LayerLoop, layer_loops, layer_marks
from hlorewrite.passes.split_stages.stacks.roles import (
    CARRIED,
    COUNTER,
    READ_ROWS,
    SAME,
    SUM,
    WRITTEN_ROWS,
    Role,
    direction,
    roles_of,
)
from hlorewrite.passes.split_stages.stacks.row_ops import rows_of
from hlorewrite.passes.split_stages.step import MARK
from hlorewrite.spmd.loops import Loop, LoopCounter, constant_integer, counter_of, counter_step
from hlorewrite.spmd.types import with_dimension


def cut_layer_loops(view: View) -> int:
    """Cuts each loop over layers in which stages begin, and drops the marks of layers.

    ``while^L(f)(x) = while^(L-b)(f')(while^b(f)(x))``, f' being f with the iterations that follow. A stack of which
    each iteration reads a row is sliced; one of which each writes a row is a stack for each stage, joined after the
    loops; a sum is one for each stage, added up after the loops; what is carried otherwise gets the mark of the stage.

    Args:
      view: the view of a module without calls.

    Returns:
      How many loops were cut.

    Raises:
      InputError: a mark does not stand in a loop over layers, or its boundaries do not fit.
    """
    loops, editor = layer_loops(view), Editor(view)  # of no rule: names in locations say what is a backward
    for each in loops:
        if len(each.edges) > 2:
            cut_loop(editor, each.loop, [(low, high) for _, low, high in each.pieces], functools.partial(
                _marked, editor, each))
    for op in layer_marks(view):
        editor.replace(op.results[0], op.operands[0])
        editor.erase(op)
    return sum(len(each.edges) > 2 for each in loops)


def cut_loop(editor: Editor, loop: Loop, ranges: Sequence[tuple[int, int]],
             passed: Callable[[ir.Value, int], ir.Value] = lambda value, number: value) -> list[ir.Operation]:
    """Puts loops over some iterations each in the place of a loop.

    Args:
      editor: the editor of the module.
      loop: the loop; its trip count is known. It is erased.
      ranges: iterations (first, end) of the loops that replace it, one after the other.
      passed: what the following loop takes for a value that it carries on, of the value and the number of the loop
        that gives it.

    Returns:
      The loops.
    """
    return _LoopCut(editor, loop, ranges, passed).write()


def _marked(editor: Editor, item: LayerLoop, value: ir.Value, number: int) -> ir.Value:
    """What is carried from one stage to the next: to the following one, or back."""
    stage = item.pieces[number][0]
    index = stage if item.backward else stage + 1
    loop = item.loop.op.location  # in the body of a loop, names do not say that it is computed again
    where = loop if RECOMPUTED in op_name(loop) else item.mark.location
    with editor.context:
        mark = ir.DictAttr.get({"stage": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), index),
                                "backward": ir.BoolAttr.get(item.backward)})
    return editor.create("stablehlo.optimization_barrier", [value], [value.type], attributes={MARK: mark},
                         location=where, before=item.loop.op).results[0]


class _LoopCut:
    """One loop while it is cut."""

    def __init__(self, editor: Editor, loop: Loop, ranges: Sequence[tuple[int, int]],
                 passed: Callable[[ir.Value, int], ir.Value]) -> None:
        self.editor, self.loop, self.op, self.ranges, self.passed = editor, loop, loop.op, ranges, passed
        self.roles = roles_of(loop, ranges)
        counter = counter_of(loop)
        assert counter is not None  # the trip count is known
        self.counter: LoopCounter = counter
        self.trips = ranges[-1][1]
        if counter.step != 1:
            self.roles = [Role(SAME if each.kind == READ_ROWS else CARRIED) if each.accesses else each
                          for each in self.roles]

    def write(self) -> list[ir.Operation]:
        """Puts the pieces before the loop, and what they give in place of what it gives."""
        current = list(self.op.operands)
        given: list[list[tuple[int, ir.Value]]] = [[] for _ in current]  # (first row, value) of stacks
        pieces: list[ir.Operation] = []
        for number, (low, high) in enumerate(self.ranges):
            operands = [self._operand(position, current, number, low, high) for position in range(len(current))]
            pieces.append(self._piece(operands, low, high))
            for position, role in enumerate(self.roles):
                result = pieces[-1].results[position]
                if role.kind == WRITTEN_ROWS:
                    given[position].append((min(role.rows[low:high]), result))
                elif role.kind == SUM:
                    current[position] = self._added(current[position], result) if number else result
                elif role.kind == CARRIED:
                    current[position] = result if number + 1 == len(self.ranges) else self.passed(result, number)
        for position, result in enumerate(list(self.op.results)):
            if users(result):
                self.editor.replace(result, self._whole(position, current, given[position]))
        self.editor.erase(self.op)
        return pieces

    def _added(self, total: ir.Value, more: ir.Value) -> ir.Value:
        return self.editor.create("stablehlo.add", [total, more], [total.type], location=self.op.location,
                                  before=self.op).results[0]

    def _operand(self, position: int, current: Sequence[ir.Value], number: int, low: int, high: int) -> ir.Value:
        role, first = self.roles[position], self.op.operands[position]
        if role.accesses:
            rows = role.rows[low:high]
            return narrow(self.editor, first, min(rows), max(rows) + 1, self.op)
        if role.kind == COUNTER:
            step = counter_step(self.loop, position) or 0
            start = (constant_integer(first) or 0) + low * step
            return splat_constant(self.editor, start, first.type, self.op)
        if role.kind == SUM and number:
            return zeros_like(self.editor, first.type, self.op)
        return current[position]

    def _piece(self, operands: Sequence[ir.Value], low: int, high: int) -> ir.Operation:
        """The loop over some of the layers."""
        editor, counter = self.editor, self.counter
        piece = editor.clone_before(self.op, self.op)
        inside = dict(zip(map(op_key, nested_ops(self.op)), nested_ops(piece), strict=True))
        loop = Loop(piece)
        for position, operand in enumerate(operands):
            editor.set_operand(piece, position, operand)
            if self.roles[position].accesses:
                for value in (loop.condition.arguments[position], loop.body.arguments[position],
                              piece.results[position]):
                    value.set_type(operand.type)
        end = counter.bound - (self.trips - high) * counter.step
        compare, side = inside[op_key(counter.compare)], 1 - counter.side
        editor.set_operand(compare, side, splat_constant(editor, end, compare.operands[side].type, compare))
        self._rebase(loop, inside, low, high)
        return piece

    def _rebase(self, loop: Loop, inside: dict[int, ir.Operation], low: int, high: int) -> None:
        """Makes the rows of stacks count from 0; so does the counter, if nothing else reads it."""
        editor, position = self.editor, self.counter.position
        counter, start = loop.body.arguments[position], self.counter.start + low
        top = next(iter(loop.body.operations)).operation
        offset = splat_constant(editor, start, counter.type, top)
        local = editor.create("stablehlo.subtract", [counter, offset], [counter.type], location=self.op.location,
                              before=top)
        for role in self.roles:
            for access in role.accesses:
                self._index(inside[op_key(access)], role, local.results[0], top, low, high)
        used = bool(users(local.results[0]))
        for op in reversed([each.operation for each in loop.body.operations][:-1]):
            if len(op.regions) == 0:
                editor.erase_if_dead(op)
        others = [op for op, _ in users(counter) if not (used and op == local)]
        if users(loop.condition.arguments[position]) != [(inside[op_key(self.counter.compare)], self.counter.side)] or \
                len(others) > 1:
            return
        if used:
            editor.replace(local.results[0], counter)
            editor.erase(local)
        editor.set_operand(loop.op, position, splat_constant(editor, 0, counter.type, loop.op))
        compare, side = inside[op_key(self.counter.compare)], 1 - self.counter.side
        end = constant_integer(compare.operands[side]) or 0
        editor.set_operand(compare, side, splat_constant(editor, end - start, compare.operands[side].type, compare))

    def _index(self, access: ir.Operation, role: Role, local: ir.Value, top: ir.Operation, low: int, high: int) -> None:
        """Makes an access take its row from the local count of iterations."""
        editor, number = self.editor, 1 if role.kind == READ_ROWS else 2
        index = local
        if direction(role.rows[low:high]) < 0:
            last = splat_constant(editor, high - low - 1, local.type, top)
            index = editor.create("stablehlo.subtract", [last, local], [local.type], location=access.location,
                                  before=access).results[0]
        type_ = access.operands[number].type
        if index.type != type_:
            index = editor.create("stablehlo.convert", [index], [type_], location=access.location,
                                  before=access).results[0]
        editor.set_operand(access, number, index)
        if role.kind == WRITTEN_ROWS:
            access.results[0].set_type(access.operands[0].type)

    def _whole(self, position: int, current: Sequence[ir.Value], given: list[tuple[int, ir.Value]]) -> ir.Value:
        """What the loop gives, from what its pieces give."""
        role, result = self.roles[position], self.op.results[position]
        if role.kind == COUNTER:
            step = counter_step(self.loop, position) or 0
            start = constant_integer(self.op.operands[position]) or 0
            return splat_constant(self.editor, start + step * self.trips, result.type, self.op)
        if role.kind == WRITTEN_ROWS:
            return joined(self.editor, [value for _, value in sorted(given, key=lambda each: each[0])], result.type,
                          self.op)
        return current[position]


def narrow(editor: Editor, value: ir.Value, low: int, high: int, before: ir.Operation) -> ir.Value:
    """Rows low to high of a value, taken from the one part that holds them where it is joined of parts."""
    shape = list(ir.RankedTensorType(value.type).shape)
    made = defining_op(value)
    if made is not None and made.name == "stablehlo.broadcast_in_dim" and \
            0 not in ir.DenseI64ArrayAttr(made.attributes["broadcast_dimensions"]):
        copy = editor.clone_before(made, before)
        copy.results[0].set_type(with_dimension(value.type, 0, high - low))
        return copy.results[0]
    if made is not None and made.name == "stablehlo.concatenate" and \
            ir.IntegerAttr(made.attributes["dimension"]).value == 0:
        first = 0
        for part in made.operands:
            if first <= low and high <= first + rows_of(part):
                return narrow(editor, part, low - first, high - first, before)
            first += rows_of(part)
    bounds = [(low, high, 1), *((0, size, 1) for size in shape[1:])]
    return static_slice(editor, value, bounds, before.location, before)


def joined(editor: Editor, parts: Sequence[ir.Value], type_: ir.Type, before: ir.Operation) -> ir.Value:
    """Parts one after the other along the first dimension."""
    with editor.context:
        first = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    return editor.create("stablehlo.concatenate", list(parts), [type_], attributes={"dimension": first},
                         location=before.location, before=before).results[0]
