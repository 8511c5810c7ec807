"""The ops a driver still has to look at, in a fixed order."""

from __future__ import annotations

from collections import deque

from hlorewrite.ir.binding import ir, op_key


class Worklist:
    """A queue of ops, each in it at most once; ops can leave it from anywhere.

    Example:
      >>> Worklist().pop() is None
      True
    """

    def __init__(self) -> None:
        self._queue: deque[list[ir.Operation | None]] = deque()
        self._cells: dict[int, list[ir.Operation | None]] = {}

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

    def discard(self, op: ir.Operation) -> None:
        """Takes an op out; it is about to be erased."""
        cell = self._cells.pop(op_key(op), None)
        if cell is not None:
            cell[0] = None
