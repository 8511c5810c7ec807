"""The graph of a flow: the places that pairs ``v = AR(w) + u`` travel to, and the uses that force the reduction."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hlorewrite.analysis.linearity import JointlyLinear
from hlorewrite.ir import BRANCHES, ir
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
