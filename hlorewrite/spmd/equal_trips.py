"""Loops that run equally often on all devices of a group, because the program itself says so.

StableHLO wants every member of a process group to execute a collective (specification, "Execution"). A loop that is
entered once and executes a collective in each iteration therefore runs equally often on all members of the
collective's groups, or the original never ends. Nothing has to be known of where its bound comes from.

What has to hold:

* the loop is entered once by each device: it stands in no other loop and no branch, no function around it is called
  twice, and it has no copy (calls are inlined). Otherwise two devices could run 3 and 5, then 5 and 3 iterations, and
  still meet 8 times;
* the collective stands in the body or the condition itself, so that nothing decides whether it runs;
* something reads it: a compiler may drop a collective without readers, and with it the proof;
* the members of each group in question hang together by the groups of such collectives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.collectives import WITH_REPLICA_GROUPS
from hlorewrite.ir.inline import is_private
from hlorewrite.ir.view import View, ancestors, defining_op, nested_ops
from hlorewrite.spmd.groups import Groups, Rows, groups_of
from hlorewrite.spmd.loops import Loop, trip_count


def equal_trip_predicates(view: View, rows: Rows, modes: Iterable[str]) -> set[ir.Value]:
    """The predicates of the loops that run equally often on all devices of each group.

    Args:
      view: the module.
      rows: the groups.
      modes: the modes of groups whose ids mean the devices of ``rows``.

    Returns:
      What the conditions of these loops return; without those that run a constant number of times.
    """
    loops: dict[int, tuple[Loop, list[ir.Operation]]] = {}
    for op in view.ops(*WITH_REPLICA_GROUPS):
        parent = op.parent
        if parent is not None and parent.operation.name == "stablehlo.while":
            loops.setdefault(op_key(parent.operation), (Loop(parent.operation), []))[1].append(op)
    if not loops:
        return set()
    lines: Counter[str] = Counter()
    proven: set[ir.Value] = set()
    for loop, collectives in loops.values():
        if trip_count(loop.op) is not None:
            continue  # nothing has to be proven
        if not entered_once(loop.op, view):
            continue
        met = [(op, g.rows) for op in collectives
               if isinstance(g := groups_of(op, view), Groups) and g.mode in modes]
        if not _hang_together(rows, [joined for _, joined in met]):
            continue  # also not by those of them that are read
        lines = lines or Counter(view.source(op) for op in view.ops("stablehlo.while"))
        if lines[view.source(loop.op)] > 1:
            continue  # it has a copy
        read = _ops_read(loop)
        if _hang_together(rows, [joined for op, joined in met if op_key(op) in read]):
            proven.add(loop.predicate)
    return proven


def entered_once(op: ir.Operation, view: View) -> bool:
    """Whether each device reaches an op exactly once when the program runs.

    Args:
      op: the op.
      view: the module.

    Returns:
      False when it stands in a loop, a branch or another region, or in a function that is called more than once.
    """
    seen: set[int] = set()
    while op_key(op) not in seen:  # Ends: each round comes to a call not seen before.
        seen.add(op_key(op))
        function = None
        for parent in ancestors(op):
            if parent.name == "func.func":
                function = parent
            elif parent.name != "sdy.manual_computation":
                return False
        if function is None:
            return False
        calls = view.calls_of(function)
        if not is_private(function):
            return not calls
        if len(calls) != 1:
            return False
        op = calls[0]
    return False


def _hang_together(rows: Rows, others: Iterable[Rows]) -> bool:
    """Whether the members of each row are joined by rows of the others, directly or through devices in between."""
    part: dict[int, set[int]] = {}
    for other in others:
        for row in other:
            joined = set(row).union(*(part[device] for device in row if device in part))
            part.update(dict.fromkeys(joined, joined))
    return all(len(row) == 1 or set(row) <= part.get(row[0], set()) for row in rows)


def _ops_read(loop: Loop) -> set[int]:
    """The keys of the ops that reach, in any iteration, the loop's condition or a result that has a reader."""
    read: set[int] = set()
    wanted = _arguments_read(loop.predicate, loop.condition, read)
    wanted |= {position for position, result in enumerate(loop.op.results) if next(iter(result.uses), None) is not None}
    pending = sorted(wanted)
    for position in pending:  # Ends: a position is added once.
        found = _arguments_read(loop.yields[position], loop.body, read) - wanted
        pending += sorted(found)
        wanted |= found
    return read


def _arguments_read(value: ir.Value, block: ir.Block, read: set[int]) -> set[int]:
    """The arguments of a block that a value is computed from; adds the keys of the ops on the way to ``read``."""
    positions: set[int] = set()
    pending = [value]
    for current in pending:  # Ends: the operands of an op are added once.
        if isinstance(current, ir.BlockArgument):
            if current.owner == block:
                positions.add(current.arg_number)
            continue
        op = defining_op(current)
        if op is None or op.block != block or op_key(op) in read:
            continue  # it comes from outside, or from a region inside an op whose operands are all added
        for inner in nested_ops(op):
            read.add(op_key(inner))
            pending += inner.operands
    return positions
