"""What a driver keeps of ops, and how edits change it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.view import defining_op, nested_ops
from hlorewrite.rules.apply.worklist import Worklist
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.events import Remark


@dataclass(frozen=True)
class Link:
    """The rewrite that made an op, and the ops it was made from.

    ``left`` holds the rules of the chain that were followed by another rule.
    """

    rule: str
    depth: int
    before: Link | None
    left: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OpNotes:
    """What a driver keeps of ops, by ``op_key``.

    Attributes:
      work: the ops to look at.
      links: the last rewrite that made or kept an op.
      pending: remarks about an op, by rule.
    """

    work: Worklist = field(default_factory=Worklist)
    links: dict[int, Link] = field(default_factory=dict)
    pending: dict[int, dict[str, Remark]] = field(default_factory=dict)

    def forget(self, op: ir.Operation) -> None:
        """An op is about to be erased."""
        self.work.discard(op)
        self.links.pop(op_key(op), None)
        self.pending.pop(op_key(op), None)


@dataclass
class EditTracker:
    """Receives edits and records which ops a rewrite touches; an erased op's handle must not be touched again.

    Attributes:
      context: what is known of values; each edit changes it.
      notes: what the driver keeps of ops.
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
