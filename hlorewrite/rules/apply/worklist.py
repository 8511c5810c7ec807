"""The ops a driver still has to look at, in a fixed order, and those around which it has to look for more."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.rules.compile.compiled import PatternNode


class Worklist:
    """A queue of ops, each in it at most once; ops can leave it from anywhere.

    Example:
      >>> Worklist().pop() is None
      True
    """

    def __init__(self) -> None:
        self._queue: deque[list[ir.Operation | None]] = deque()
        self._cells: dict[int, list[ir.Operation | None]] = {}
        self._walks: dict[int, tuple[ir.Operation, dict[int, PatternNode]]] = {}

    def push(self, op: ir.Operation) -> None:
        """Puts an op at the end unless it is in the queue."""
        key = op_key(op)
        if key not in self._cells:
            cell: list[ir.Operation | None] = [op]
            self._cells[key] = cell
            self._queue.append(cell)

    def pop(self) -> ir.Operation | None:
        """The first op; None when the queue is empty."""
        # Ends: each round takes an op out of the queue.
        while self._queue:
            op = self._queue.popleft()[0]
            if op is not None:
                del self._cells[op_key(op)]
                return op
        return None

    def put_off(self, op: ir.Operation, nodes: Sequence[PatternNode]) -> None:
        """Notes that the roots around an op, as these parts of a match, are to be tried again some time."""
        self._walks.setdefault(op_key(op), (op, {}))[1].update((id(node), node) for node in nodes)

    def not_put_off(self, op: ir.Operation, nodes: Sequence[PatternNode]) -> Sequence[PatternNode]:
        """The parts of a match for which this has not been noted, or has been taken out since."""
        walk = self._walks.get(op_key(op))
        return nodes if walk is None else [node for node in nodes if id(node) not in walk[1]]

    def pop_walk(self) -> tuple[ir.Operation, PatternNode] | None:
        """The first op that was put off, and as which part of a match; None when there is none."""
        if not self._walks:
            return None
        key, (op, nodes) = next(iter(self._walks.items()))
        node = nodes.pop(next(iter(nodes)))
        if not nodes:
            del self._walks[key]
        return op, node

    def discard(self, op: ir.Operation) -> None:
        """Takes an op out; it is about to be erased."""
        self._walks.pop(op_key(op), None)
        cell = self._cells.pop(op_key(op), None)
        if cell is not None:
            cell[0] = None
