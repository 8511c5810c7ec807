"""The driver's index of ops, and how edits change it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hlorewrite.ir import defining_op, ir, nested_ops, op_key
from hlorewrite.rules.compile.compiled import PatternNode
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.listener import Remark


class Worklist:
    """A queue without duplicates, from which any op can be removed.

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
        """Postpones trying the roots around an op again, for these parts of a match."""
        self._walks.setdefault(op_key(op), (op, {}))[1].update((id(node), node) for node in nodes)

    def not_put_off(self, op: ir.Operation, nodes: Sequence[PatternNode]) -> Sequence[PatternNode]:
        """The parts of a match that are not postponed now."""
        walk = self._walks.get(op_key(op))
        return nodes if walk is None else [node for node in nodes if id(node) not in walk[1]]

    def pop_walk(self) -> tuple[ir.Operation, PatternNode] | None:
        """The first postponed op, with its part of a match; None when there is none."""
        if not self._walks:
            return None
        key, (op, nodes) = next(iter(self._walks.items()))
        node = nodes.pop(next(iter(nodes)))
        if not nodes:
            del self._walks[key]
        return op, node

    def discard(self, op: ir.Operation) -> None:
        """Removes an op that is about to be erased."""
        self._walks.pop(op_key(op), None)
        cell = self._cells.pop(op_key(op), None)
        if cell is not None:
            cell[0] = None


@dataclass(frozen=True)
class Link:
    """The rewrite that made an op, and the ops it was made from.

    ``left`` lists the rules of the chain that another rule followed.
    """

    rule: str
    depth: int
    before: Link | None
    left: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OpNotes:
    """The driver's index of ops, by ``op_key``.

    Attributes:
      work: the ops to look at.
      links: the last rewrite that made or kept an op.
      pending: remarks about an op, by rule.
    """

    work: Worklist = field(default_factory=Worklist)
    links: dict[int, Link] = field(default_factory=dict)
    pending: dict[int, dict[str, Remark]] = field(default_factory=dict)

    def forget(self, op: ir.Operation) -> None:
        """Forgets an op that is about to be erased."""
        self.work.discard(op)
        self.links.pop(op_key(op), None)
        self.pending.pop(op_key(op), None)


@dataclass
class EditTracker:
    """Receives edits and records which ops a rewrite touches; never touches an erased op's handle again.

    Attributes:
      context: the facts known about values; each edit updates them.
      notes: the driver's index of ops.
    """

    context: RuleContext
    notes: OpNotes
    touched: dict[int, ir.Operation] = field(default_factory=dict)
    survivors: dict[int, ir.Operation] = field(default_factory=dict)
    created: dict[int, ir.Operation] = field(default_factory=dict)

    def start(self, matched: Iterable[ir.Operation]) -> None:
        self.survivors = {op_key(op): op for op in matched}
        self.touched = dict(self.survivors)
        self.created = {}

    def inserted(self, op: ir.Operation) -> None:
        self.context.inserted(op)
        self.created[op_key(op)] = op
        self.touched.update((op_key(inner), inner) for inner in nested_ops(op))

    def erasing(self, op: ir.Operation) -> None:
        self.context.erasing(op)
        for operand in op.operands:
            definer = defining_op(operand)
            if definer is not None:
                self.touched[op_key(definer)] = definer.operation
        for gone in nested_ops(op):
            for kept in (self.touched, self.survivors, self.created):
                kept.pop(op_key(gone), None)
            self.notes.forget(gone)

    def moved(self, op: ir.Operation) -> None:
        self.context.changed()
        self.touched[op_key(op)] = op

    def replacing(self, old: ir.Value, new: ir.Value) -> None:
        self.context.replacing(old, new)
        for use in old.uses:
            reader = use.owner.operation
            self.touched[op_key(reader)] = reader
