"""The replicated addend of a deferred reduction: the ``u`` of ``v = AR(w) + u``, determined before any edit.

``u`` is nearly always the identity (accumulators start at zero) or a value from before the loop (``acc + AR(g)``
started at ``acc0`` keeps ``u = acc0``). Only otherwise is it computed next to ``w``, and carried through loops and
branches as a separate value.
"""

from dataclasses import dataclass

from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ProgramPoint, places_to
from hlorewrite.analysis.deferral_graph.placement import ReductionPlacement
from hlorewrite.ir import BRANCHES, Loop, ir, op_key, terminator
from hlorewrite.ops.reducers import OP_OF_KIND, is_identity

LOOP = "stablehlo.while"
BARRIER = "stablehlo.optimization_barrier"


_COSTLY = ("stablehlo.dot_general", "stablehlo.convolution", "stablehlo.fft", "stablehlo.triangular_solve",
           "stablehlo.reduce_window")


@dataclass(frozen=True)
class ReplicatedAddend:
    """One ``u``.

    Attributes:
      form: ``identity``; ``value`` (it is ``value`` itself); ``reduced`` (it is the reduction made at ``place``);
        ``beside`` (it is computed or carried next to ``value``).
      value: the value meant.
      place: where the reduction is made.
    """

    form: str
    value: ir.Value | None = None
    place: ProgramPoint | None = None


IDENTITY = ReplicatedAddend("identity")


class ReplicatedAddends:
    """The ``u`` of every deferred value under a placement.

    Args:
      flow: the flow of the class.
      placement: where it is reduced.
      kind: the kind of reduction.

    Attributes:
      slots: (op key, position) of each loop or branch result whose ``u`` is carried separately.
    """

    def __init__(self, flow: DeferralGraph, placement: ReductionPlacement, kind: str) -> None:
        self.flow = flow
        self.placement = placement
        self.kind = kind
        self.slots: dict[tuple[int, int], ir.Operation] = {}
        self._sources = set(flow.sources)
        self._reduced_in_branches = {place.value for place in placement.touched if place.branch is not None}
        self._addends: dict[ir.Value, ReplicatedAddend] = {}
        # Ends: each round adds a slot for a result, of which there are finitely many.
        while self._add_slots():
            self._addends.clear()

    # ---- questions

    def holds_local(self, value: ir.Value) -> bool:
        """Whether a value's name holds ``w`` after the rewrite."""
        home = ProgramPoint(value)
        if home in self.placement.deferred:
            return True
        return home in self.placement.reduced and value not in self._sources

    def is_deferred(self, value: ir.Value, reader: ir.Operation) -> bool:
        """Whether a reader of a value reads its ``w``."""
        return all(place in self.placement.deferred for place in self._places_to(value, reader))

    def contribution(self, value: ir.Value, reader: ir.Operation) -> ReplicatedAddend:
        """The contribution of an operand to the ``u`` of its reader's result."""
        chain = self._places_to(value, reader)
        if all(place in self.placement.deferred for place in chain):
            return self.of(value)
        made = next((place for place in chain if place in self.placement.reduced), None)
        if made is not None and self.holds_local(value):
            return ReplicatedAddend("reduced", value, made)
        return IDENTITY if is_identity(value, self.kind) else ReplicatedAddend("value", value)

    def of(self, value: ir.Value) -> ReplicatedAddend:
        """The ``u`` of a deferred value."""
        known = self._addends.get(value)
        if known is not None:
            return known
        pending: list[tuple[ir.Value, list[tuple[ir.Operation, int]] | None]] = [(value, None)]
        # Ends: a value depends only on values before it; cycles through loops end at their arguments.
        while pending:  # not recursive: unrolled programs have chains of any length
            asked, made_of = pending.pop()
            if asked in self._addends:
                continue
            if made_of is None:
                made_of = self._made_of(asked)
                values = [reader.operands[position] for reader, position in made_of]
                opened = [(operand, None) for operand, (reader, _) in zip(values, made_of, strict=True)
                          if operand not in self._addends and self.is_deferred(operand, reader)]
                if opened:
                    pending += [(asked, made_of), *opened]
                    continue
            self._addends[asked] = self._work_out(asked, made_of)
        return self._addends[value]

    @property
    def order(self) -> list[ir.Value]:
        """The deferred values visited so far, each after those that its ``u`` depends on."""
        return list(self._addends)

    def dependencies(self, value: ir.Value) -> list[ir.Value]:
        """The deferred values whose ``u`` a value's ``u`` depends on."""
        return [reader.operands[position] for reader, position in self._made_of(value)
                if self.is_deferred(reader.operands[position], reader)]

    def _places_to(self, value: ir.Value, reader: ir.Operation) -> list[ProgramPoint]:
        """The places that a value passes on its way to a reader, as far as the placement touches them."""
        return places_to(value, reader) if value in self._reduced_in_branches else [ProgramPoint(value)]

    def _made_of(self, value: ir.Value) -> list[tuple[ir.Operation, int]]:
        """(op, operand position) of each operand that a value's ``u`` depends on."""
        if value in self._sources:
            return []
        owner = value.owner
        if isinstance(owner, ir.Block):
            op, position = owner.owner.operation, ir.BlockArgument(value).arg_number
        else:
            op, position = owner.operation, ir.OpResult(value).result_number
        if (op_key(op), position) in self.slots:
            return []
        if op.name in BRANCHES:
            return [(terminator(region.blocks[0]), position) for region in op.regions]
        if op.name in (LOOP, BARRIER):
            return [(op, position)]
        return [(op, operand) for operand in sorted(self.flow.joint[op_key(op)].operands)]

    def costly_copies(self) -> list[tuple[ir.Operation, int]]:
        """(op, operand position) of expensive ops that would be computed a second time for their ``u``."""
        copies = []
        for place in self.placement.touched:
            owner = place.value.owner
            if isinstance(owner, ir.Block) or owner.operation.name not in _COSTLY or not self.holds_local(place.value):
                continue
            if self.of(place.value).form == "beside":
                linear = self.flow.joint[op_key(owner.operation)]
                copies += [(owner.operation, position) for position in linear.operands]
        return copies

    # ---- working it out

    def _work_out(self, value: ir.Value, made_of: list[tuple[ir.Operation, int]]) -> ReplicatedAddend:
        if not made_of:  # a source, or carried in a slot
            return IDENTITY if value in self._sources else ReplicatedAddend("beside", value)
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.name in (LOOP, BARRIER, *BRANCHES):
            reader, position = made_of[0]
            return self.contribution(reader.operands[position], reader)
        return self._through_op(owner.operation, value)

    def _of_branches(self, op: ir.Operation, position: int) -> list[ReplicatedAddend]:
        ends = [terminator(region.blocks[0]) for region in op.regions]
        return [self.contribution(end.operands[position], end) for end in ends]

    def _through_op(self, op: ir.Operation, value: ir.Value) -> ReplicatedAddend:
        joint = sorted(self.flow.joint[op_key(op)].operands)
        parts = [self.contribution(op.operands[position], op) for position in joint]
        if all(part == IDENTITY for part in parts):
            return IDENTITY
        others = [part for part in parts if part != IDENTITY]
        hands_on = op.name == OP_OF_KIND[self.kind] or (op.name == "stablehlo.subtract" and parts[1] == IDENTITY)
        if hands_on and len(others) == 1:
            return others[0]
        if op.name == "stablehlo.select" and len(others) == len(parts) and len(set(parts)) == 1:
            return parts[0]
        return ReplicatedAddend("beside", value)

    # ---- which loops and branches must carry it

    def _add_slots(self) -> bool:
        """Finds positions whose ``u`` changes in a loop or branch; returns whether any was added."""
        before = len(self.slots)
        for place in self.placement.touched:
            owner = place.value.owner
            if place.branch is not None or isinstance(owner, ir.Block):
                continue
            op = owner.operation
            position = ir.OpResult(place.value).result_number
            if (op_key(op), position) in self.slots:
                continue
            in_loop = op.name == LOOP and self._changes_in_loop(op, position)
            if in_loop or (op.name in BRANCHES and not self._same_in_branches(op, position)):
                self.slots[op_key(op), position] = op
        return len(self.slots) > before

    def _changes_in_loop(self, op: ir.Operation, position: int) -> bool:
        loop = Loop(op)
        end = terminator(loop.body)
        return self.contribution(end.operands[position], end) != self.of(loop.body.arguments[position])

    def _same_in_branches(self, op: ir.Operation, position: int) -> bool:
        parts = self._of_branches(op, position)
        if any(part != parts[0] for part in parts):
            return False
        return parts[0].value is None or not _defined_inside(parts[0], op)


def _defined_inside(part: ReplicatedAddend, op: ir.Operation) -> bool:
    """Whether a ``u`` exists only within the regions of an op."""
    block = part.place.branch if part.place is not None and part.place.branch is not None else None
    if block is None and part.value is not None:
        owner = part.value.owner
        block = owner if isinstance(owner, ir.Block) else owner.operation.block
    # Ends: each step goes to the block around.
    while block is not None:
        parent = block.owner.operation
        if parent == op:
            return True
        block = None if parent.name in ("func.func", "builtin.module") else parent.block
    return False
