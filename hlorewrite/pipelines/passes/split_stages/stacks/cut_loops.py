"""Cuts a loop into loops over some of its iterations, with their rows of the values that are stacked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hlorewrite.analysis.loops import IterationNumbers, LoopCounter, constant_integer, counter_of, counter_step
from hlorewrite.ir import (
    Editor,
    Loop,
    block_ops,
    defining_op,
    holds_number,
    ir,
    is_number,
    nested_ops,
    op_key,
    users,
    with_dimension,
)
from hlorewrite.passes.common.device_masks import zeros_like
from hlorewrite.passes.common.emit import splat_constant, wrapped
from hlorewrite.passes.common.stacked_rows import row_stacks
from hlorewrite.pipelines.passes.split_stages.stacks.direct_rows import joined, origins_of, rows_from

# ---- the kind of each value that a loop over layers carries: a stack with a row per layer, a sum, or neither


COUNTER, SAME, READ_ROWS, WRITTEN_ROWS, SUM, CARRIED = (
    "counter", "same", "rows that are read", "rows that are written", "sum", "carried")


@dataclass(frozen=True)
class IterArgKind:
    """The kind of one carried value.

    Attributes:
      kind: ``counter``: an integer that starts and steps at constants; ``same``: never changes; rows that are read or
        written: a stack of which each iteration reads or writes the row of its layer, and nothing else does; ``sum``:
        iterations only add to it; ``carried``: anything else.
      rows: for a stack, the row of each iteration.
      accesses: for a stack, the slices and updates in the body.
    """

    kind: str
    rows: tuple[int, ...] = ()
    accesses: tuple[ir.Operation, ...] = ()


def iter_arg_kinds(loop: Loop, ranges: Sequence[tuple[int, int]]) -> list[IterArgKind]:
    """The role of each value a loop carries.

    Args:
      loop: the loop; its trip count is known.
      ranges: iterations (first, end) of the pieces it is to be cut into; a stack's rows must lie side by side in each,
        in the order of the iterations or against it.

    Returns:
      One role for each position.
    """
    numbers = IterationNumbers(loop)
    written = row_stacks(loop, numbers)
    roles = []
    for position, argument in enumerate(loop.body.arguments):
        stack = written.get(position)
        if stack is not None and stack.dimension == 0:
            rows = numbers.of(stack.indices[0])
            found = IterArgKind(WRITTEN_ROWS, tuple(rows or ()), (stack.update,))
            roles.append(found if _side_by_side(found.rows, ranges) else IterArgKind(CARRIED))
        elif loop.yields[position] == argument:
            roles.append(_read(loop, position, ranges, numbers))
        elif counter_step(loop, position) is not None and constant_integer(loop.op.operands[position]) is not None:
            roles.append(IterArgKind(COUNTER))
        else:
            roles.append(IterArgKind(SUM if _only_added_to(loop, position) else CARRIED))
    return roles


def _read(loop: Loop, position: int, ranges: Sequence[tuple[int, int]], numbers: IterationNumbers) -> IterArgKind:
    """A value that never changes: rows that are read, if slices of one row are all that reads it."""
    argument = loop.body.arguments[position]
    readers = [op for op, number in users(argument) if (op.name, number) != ("stablehlo.return", position)]
    if not readers or users(loop.condition.arguments[position]) or any(not _reads_row(op) for op in readers):
        return IterArgKind(SAME)
    tables = {tuple(numbers.of(op.operands[1]) or ()) for op in readers}
    rows = tables.pop()
    inside = max(rows, default=0) < ir.RankedTensorType(argument.type).shape[0]
    return IterArgKind(READ_ROWS, rows, tuple(readers)) if not tables and inside and _side_by_side(rows, ranges) else \
        IterArgKind(SAME)


def _reads_row(op: ir.Operation) -> bool:
    if op.name != "stablehlo.dynamic_slice":
        return False
    whole, part = (list(ir.RankedTensorType(value.type).shape) for value in (op.operands[0], op.results[0]))
    return part[0] == 1 and part[1:] == whole[1:] and all(constant_integer(each) == 0 for each in
                                                          list(op.operands)[2:])


def _side_by_side(rows: tuple[int, ...], ranges: Sequence[tuple[int, int]]) -> bool:
    return bool(rows) and min(rows) >= 0 and all(direction(rows[low:high]) for low, high in ranges)


def direction(rows: Sequence[int]) -> int:
    """1 for rows in ascending order, -1 for rows in descending order, 0 for any other order.

    Example:
      >>> direction((2, 3, 4)), direction((4, 3)), direction((1, 3))
      (1, -1, 0)
    """
    for step in (1, -1):
        if list(rows) == [rows[0] + step * k for k in range(len(rows))]:
            return step
    return 0


def _only_added_to(loop: Loop, position: int) -> bool:
    argument = loop.body.arguments[position]
    add = defining_op(loop.yields[position])
    return (add is not None and add.name == "stablehlo.add" and [op for op, _ in users(argument)] == [add]
            and len(users(add.results[0])) == 1 and not users(loop.condition.arguments[position])
            and is_number(argument.type))


# ---- the cut


def cut_loop(editor: Editor, loop: Loop, ranges: Sequence[tuple[int, int]],
             passed: Callable[[ir.Value, int], ir.Value] = lambda value, number: value) -> list[ir.Operation]:
    """Replaces a loop by several loops, each over some of its iterations.

    ``while^L(f)(x) = while^(L-b)(f')(while^b(f)(x))``, f' being f with the iterations that follow. A stack of which
    each iteration reads a row is sliced; one of which each writes a row is a stack for each loop, joined after them;
    a sum is one for each loop, added up.

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


class _LoopCut:
    """One loop while it is cut."""

    def __init__(self, editor: Editor, loop: Loop, ranges: Sequence[tuple[int, int]],
                 passed: Callable[[ir.Value, int], ir.Value]) -> None:
        self.editor, self.loop, self.op, self.ranges, self.passed = editor, loop, loop.op, ranges, passed
        self.roles = iter_arg_kinds(loop, ranges)
        counter = counter_of(loop)
        assert counter is not None  # the trip count is known
        self.counter: LoopCounter = counter
        self.trips = ranges[-1][1]
        if counter.step != 1:
            self.roles = [IterArgKind(SAME if each.kind == READ_ROWS else CARRIED) if each.accesses else each
                          for each in self.roles]

    def write(self) -> list[ir.Operation]:
        """Puts the pieces before the loop, and replaces the loop's results by theirs."""
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
            return splat_constant(self.editor, wrapped(start, first.type), first.type, self.op)
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
        counter, start = loop.body.arguments[position], self.counter.start + low * self.counter.step
        top = next(iter(loop.body.operations)).operation
        offset = splat_constant(editor, start, counter.type, top)
        local = editor.create("stablehlo.subtract", [counter, offset], [counter.type], location=self.op.location,
                              before=top)
        for role in self.roles:
            for access in role.accesses:
                self._index(inside[op_key(access)], role, local.results[0], top, low, high)
        used = bool(users(local.results[0]))
        for op in reversed(block_ops(loop.body)):
            if len(op.regions) == 0:
                editor.erase_if_dead(op)
        others = [op for op, _ in users(counter) if not (used and op == local)]
        compare, side = inside[op_key(self.counter.compare)], 1 - self.counter.side
        end = (constant_integer(compare.operands[side]) or 0) - start
        if users(loop.condition.arguments[position]) != [(compare, self.counter.side)] or len(others) > 1 or \
                not holds_number(counter.type, end):
            return
        if used:
            editor.replace(local.results[0], counter)
            editor.erase(local)
        editor.set_operand(loop.op, position, splat_constant(editor, 0, counter.type, loop.op))
        editor.set_operand(compare, side, splat_constant(editor, end, compare.operands[side].type, compare))

    def _index(self, access: ir.Operation, role: IterArgKind, local: ir.Value, top: ir.Operation, low: int,
               high: int) -> None:
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
            end = wrapped(start + step * self.trips, result.type)
            return splat_constant(self.editor, end, result.type, self.op)
        if role.kind == WRITTEN_ROWS:
            return joined(self.editor, [value for _, value in sorted(given, key=lambda each: each[0])], result.type,
                          self.op)
        return current[position]


def narrow(editor: Editor, value: ir.Value, low: int, high: int, before: ir.Operation) -> ir.Value:
    """Rows low to high of a value, read from where they were made."""
    return rows_from(editor, origins_of(value, low, high), with_dimension(value.type, 0, high - low), before)
