"""The graph of a flow: the places that pairs ``v = AR(w) + u`` travel to, the uses that force the reduction, and the
products that are linear in one of two pairs.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hlorewrite.analysis.linearity import JointlyLinear
from hlorewrite.ir import BRANCHES, ir, op_key, tensor_bytes
from hlorewrite.util.reachability import reachable


class ProgramPoint(NamedTuple):
    """A point where a value can be reduced: at its definition, or on entry to a branch that reads it.

    Tables hold many of these, so this is a tuple, which Python hashes in C. Blocks cannot be compared with None, so the
    branch is in a nested tuple.

    Attributes:
      value: the value.
      entered: a tuple with the block of a ``case`` or ``if`` on whose entry it is reduced; empty for its definition.
    """

    value: ir.Value
    entered: tuple[ir.Block, ...] = ()

    @property
    def branch(self) -> ir.Block | None:
        """The block of the branch; None for the definition."""
        return self.entered[0] if self.entered else None


def uses_in(place: ProgramPoint) -> list[tuple[ir.Operation, int]]:
    """The uses of a value that a place covers: all of them, or those inside its branch."""
    uses = [(use.owner.operation, use.operand_number) for use in place.value.uses]
    if place.branch is None:
        return uses
    return [(op, position) for op, position in uses if _is_inside(op, place.branch)]


def _is_inside(op: ir.Operation, block: ir.Block) -> bool:
    current: ir.Block | None = op.block
    # Ends: each step goes to the block around.
    while current is not None and current != block:
        parent = current.owner
        current = None if parent is None or parent.operation.name == "builtin.module" else parent.operation.block
    return current is not None


def blocks_between(place: ProgramPoint, op: ir.Operation) -> list[ir.Block]:
    """The blocks entered on the way from a place to a use, outermost first."""
    home = place.branch
    if home is None:
        owner = place.value.owner
        home = owner if isinstance(owner, ir.Block) else owner.operation.block
    path: list[ir.Block] = []
    current = op.block
    # Ends: each step goes to the block around, and the op stands within the place's block.
    while current != home:
        path.append(current)
        current = current.owner.operation.block
    return path[::-1]


def places_to(value: ir.Value, reader: ir.Operation) -> list[ProgramPoint]:
    """The places a value passes on its way to a reader: its definition, then the branches it enters."""
    chain = [ProgramPoint(value)]
    # Ends: each place is one branch further in.
    while True:
        crossed = blocks_between(chain[-1], reader)
        if not crossed or crossed[0].owner.operation.name not in BRANCHES:
            return chain
        chain.append(ProgramPoint(value, (crossed[0],)))


Need = Literal["not linear", "rival", "differs", "trip count", "branch", "condition", "token", "call", "mesh", "result",
               "region", "shape"]
"""Why a reader needs a value reduced: it is not linear; it is linear in another factor; a value next to it differs
between devices; the trip count or the branch does; the loop's condition reads it; the loop carries a token; a call,
another mesh, the caller of the program, or an op with a region takes it; its shape is not static."""


@dataclass(frozen=True)
class ForcingUse:
    """A use that forces the reduction: its reader needs the value reduced.

    Attributes:
      sentence: why the reader cannot take the pair.
      reader: the op that reads the value.
      culprit: the op at fault, when it is another.
      illegal: whether a legality condition failed (a remark ``blocked``, not ``missed``).
      need: the kind of reason, for advice.
    """

    sentence: str
    reader: ir.Operation
    culprit: ir.Operation | None = None
    illegal: bool = False
    need: Need = "not linear"


@dataclass
class DeferralGraph:
    """The graph of one class of reductions.

    Attributes:
      sources: results of the all-reduces the class holds.
      edges: place -> places its pair travels to.
      forcing_uses: place -> readers that need it reduced.
      joint: op key -> operand positions the op is taken as linear in.
      executions: how often each place is passed.
    """

    sources: list[ir.Value]
    edges: dict[ProgramPoint, list[ProgramPoint]] = field(default_factory=dict)
    forcing_uses: dict[ProgramPoint, list[ForcingUse]] = field(default_factory=dict)
    joint: dict[int, JointlyLinear] = field(default_factory=dict)
    executions: dict[ProgramPoint, float] = field(default_factory=dict)

    def reachable(self, starts: Iterable[ProgramPoint]) -> Iterator[ProgramPoint]:
        """Places that the pairs of some places can travel to, nearest first, including the starts."""
        return reachable(starts, lambda place: self.edges.get(place, ()))

    def release(self) -> None:
        """Frees the edges and execution counts; keeps the sources and the jointly linear operands of ops."""
        for table in (self.edges, self.forcing_uses, self.executions):
            table.clear()

    def meets(self, values: AbstractSet[ir.Value]) -> bool:
        """Whether some values are in the flow, or results of an op that reads a value of the flow."""
        readers = (use.reader for uses in self.forcing_uses.values() for use in uses)
        return (any(place.value in values for place in self.executions)
                or any(result in values for reader in readers for result in reader.results))


# ---- products of two candidates: an op linear in either of two pairs, but not in both, is treated as linear in one


RIVALS = "it meets another reduced value there, and the op is linear in each of them, but not in both at once"

Rivals = dict[int, tuple[ir.Operation, list[JointlyLinear]]]
"""Op key -> an op that is linear in either of two candidates but not in both, and its choices."""


class Refusals:
    """Uses that force the reduction although a fact allows them; a flow is built for one set of these."""

    def __init__(self) -> None:
        self._refused: dict[tuple[int, int], str] = {}
        self._decided: Rivals = {}
        self._asked = False

    def sentence(self, use: tuple[int, int]) -> str | None:
        """Why a use, by op key and operand position, is refused; None when it is not."""
        return self._refused.get(use) if self._refused else None

    def ask(self, uses: Iterable[tuple[ir.Operation, int]], sentence: str) -> int:
        """Refuses uses if asked; returns how many of them were not refused before."""
        added = self._refuse(uses, sentence)
        self._asked |= added > 0
        return added

    def decide(self, flow: DeferralGraph, rivals: Rivals) -> None:
        """For each product of two candidates, refuses the factor that carries fewer bytes."""
        self._decided.update(rivals)
        if not self._refuse(_losers(flow, rivals), RIVALS):
            self._refuse(((op, position) for op, choices in rivals.values() for choice in choices
                          for position in choice.operands), RIVALS)

    def holds_for(self, later: DeferralGraph) -> bool:
        """Whether a new builder would find the part of the flow that begins where the built one is reduced.

        Args:
          later: the part of the built flow after these places, with their reductions as its sources.

        Returns:
          False if the caller asked to refuse a use, or if the other of two factors would carry more bytes.
        """
        if self._asked:
            return False
        weight = _origin_bytes(later) if self._decided else {}
        for op, choices in self._decided.values():
            winner = next((choice for choice in choices if not any(
                (op_key(op), position) in self._refused for position in choice.operands)), None)
            if any(_carried(op, choice, weight) for choice in choices) and _winner(op, choices, weight) is not winner:
                return False
        return True

    def _refuse(self, uses: Iterable[tuple[ir.Operation, int]], sentence: str) -> int:
        before = len(self._refused)
        self._refused.update({(op_key(op), position): sentence for op, position in uses})
        return len(self._refused) - before


def _losers(flow: DeferralGraph, rivals: Rivals) -> list[tuple[ir.Operation, int]]:
    """Operand positions that give way if an op is linear in one candidate or another, but not in both."""
    weight = _origin_bytes(flow)
    losers: list[tuple[ir.Operation, int]] = []
    for op, choices in rivals.values():
        winner = _winner(op, choices, weight)
        losers += [(op, position) for choice in choices if choice is not winner
                   for position in sorted(choice.operands - winner.operands)]
    return losers


def _origin_bytes(flow: DeferralGraph) -> dict[ir.Value, int]:
    """For each value, the bytes of the largest reduction whose pair reaches it."""
    weight: dict[ir.Value, int] = {}
    seen: set[ProgramPoint] = set()
    for source in sorted(flow.sources, key=lambda value: -tensor_bytes(value.type)):
        pending = [ProgramPoint(source)] if source not in weight else []
        # Ends: a place is added once; what is after one that larger reductions reach, they reach too.
        for place in pending:
            weight.setdefault(place.value, tensor_bytes(source.type))
            fresh = [target for target in dict.fromkeys(flow.edges.get(place, ())) if target not in seen]
            seen.update(fresh)
            pending += fresh
    return weight


def _carried(op: ir.Operation, choice: JointlyLinear, weight: dict[ir.Value, int]) -> int:
    """The most bytes that an operand of a choice carries."""
    return max(weight.get(op.operands[position], 0) for position in choice.operands)


def _winner(op: ir.Operation, choices: list[JointlyLinear], weight: dict[ir.Value, int]) -> JointlyLinear:
    """The choice that carries the most bytes; among equals, the one of the first operand."""
    return max(choices, key=lambda choice: (_carried(op, choice, weight), -min(choice.operands)))
