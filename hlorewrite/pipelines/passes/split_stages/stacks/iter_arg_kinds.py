"""The kind of each value that a loop over layers carries: a stack with a row per layer, a sum, or neither."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.analysis.counters import IterationNumbers
from hlorewrite.analysis.loops import constant_integer, counter_step
from hlorewrite.ir import Loop, defining_op, ir, is_number, users
from hlorewrite.passes.common.stacked_rows import row_stacks

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
