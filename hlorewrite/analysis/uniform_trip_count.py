"""Loops that run equally often on all devices of a group, because the program itself says so.

StableHLO requires every member of a process group to execute a collective (specification, "Execution"). A loop that is
entered once and executes a collective in each iteration therefore runs equally often on all members of the
collective's groups, or the original never ends. This does not hold for a bound that is known to differ, because the
program computes it from the device's id (``Uniformity`` and the validator check that themselves).

The conditions:

* the loop is entered once by each device: it is in no other loop and no branch, no function around it is called
  twice, and it has no copy (calls are inlined). Otherwise two devices could run 3 and 5, then 5 and 3 iterations, and
  still meet 8 times;
* the collective is directly in the body or the condition, so nothing decides whether it runs;
* every compiler executes it in each iteration: its operand changes in the loop, and a result of the program depends on
  it. XLA moves a collective of an invariant value before the loop, or drops one without readers, and the loop may then
  run differently often on each device (``dependence``);
* the groups of such collectives connect the members of each group in question.
"""

from collections import Counter
from collections.abc import Iterable

from hlorewrite.analysis.dependence import Dependence
from hlorewrite.analysis.groups import Groups, Rows, groups_of
from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir import WITH_REPLICA_GROUPS, Loop, View, ancestors, ir, is_private, op_key


class LoopWitnesses:
    """The collectives that every device executes in each iteration of a loop; valid until the module changes.

    Args:
      view: the module.

    Attributes:
      loops: the loops, by the keys of their ops, with the collectives that run in each iteration unconditionally.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.loops: dict[int, tuple[Loop, list[ir.Operation]]] = {}
        self._dependence = Dependence(view)
        self._lines: Counter[str] | None = None
        self._found: dict[int, list[ir.Operation]] = {}
        for op in view.ops(*WITH_REPLICA_GROUPS):
            around = self._loop_around(op)
            if around is not None:
                self.loops.setdefault(op_key(around), (Loop(around), []))[1].append(op)

    def of(self, loop: Loop) -> list[ir.Operation]:
        """The collectives that prove equal trip counts for the members of their groups; none if the loop may run again.

        Args:
          loop: the loop.
        """
        key = op_key(loop.op)
        if key not in self._found:
            candidates = self.loops[key][1] if key in self.loops else []
            self._found[key] = [op for op in candidates if self._dependence.survives(op, loop)] if (
                entered_once(loop.op, self.view) and not self._has_copy(loop.op)) else []
        return self._found[key]

    def _has_copy(self, op: ir.Operation) -> bool:
        if self._lines is None:
            self._lines = Counter(self.view.source(loop) for loop in self.view.ops("stablehlo.while"))
        return self._lines[self.view.source(op)] > 1

    def _loop_around(self, op: ir.Operation) -> ir.Operation | None:
        """The loop that a collective belongs to: around it, or around the only call of its function."""
        seen: set[int] = set()
        # Ends: each round comes to a call not seen before.
        while op.parent is not None and op_key(op) not in seen:
            seen.add(op_key(op))
            parent = op.parent.operation
            if parent.name == "stablehlo.while":
                return parent
            if parent.name != "func.func" or not is_private(parent):
                return None
            calls = self.view.calls_of(parent, in_order=False)
            if len(calls) != 1:
                return None
            op = calls[0]
        return None


def equal_trip_predicates(view: View, rows: Rows, modes: Iterable[str]) -> set[ir.Value]:
    """The predicates of the loops that run equally often on all devices of each group.

    Args:
      view: the module.
      rows: the groups.
      modes: the modes whose ids denote the devices of ``rows``.

    Returns:
      The results of these loops' conditions, without loops that run a constant number of times.
    """
    witnesses = LoopWitnesses(view)
    proven: set[ir.Value] = set()
    for loop, collectives in witnesses.loops.values():
        if trip_count(loop.op) is not None:
            continue  # nothing has to be proven
        joined = {op_key(op): g.rows for op in collectives
                  if isinstance(g := groups_of(op, view), Groups) and g.mode in modes}
        if not _hang_together(rows, joined.values()):
            continue  # nor by those of them that survive
        if _hang_together(rows, [joined[op_key(op)] for op in witnesses.of(loop) if op_key(op) in joined]):
            proven.add(loop.predicate)
    return proven


def entered_once(op: ir.Operation, view: View) -> bool:
    """Whether each device reaches an op exactly once when the program runs.

    Args:
      op: the op.
      view: the module.

    Returns:
      False when it is in a loop, a branch or another region, or in a function that is called more than once.
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
    """Whether the other rows connect the members of each row, directly or through devices in between."""
    part: dict[int, set[int]] = {}
    for other in others:
        for row in other:
            joined = set(row).union(*(part[device] for device in row if device in part))
            part.update(dict.fromkeys(joined, joined))
    return all(len(row) == 1 or set(row) <= part.get(row[0], set()) for row in rows)
