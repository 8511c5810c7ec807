"""The graph of a flow: the places that pairs ``v = AR(w) + u`` travel to, and the uses that force the reduction."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal

from hlorewrite.analysis.deferral_graph.program_point import ProgramPoint
from hlorewrite.analysis.linearity import JointlyLinear
from hlorewrite.ir.binding import ir
from hlorewrite.util.reachability import reachable

Need = Literal["not linear", "rival", "differs", "trip count", "branch", "condition", "token", "call", "mesh", "result",
               "region", "shape"]
"""Why a reader needs a value reduced: it is not linear; it is linear in another factor; a value next to it differs
between devices; the trip count or the branch does; the loop's condition reads it; the loop carries a token; a call,
another mesh, the caller of the program, or an op with a region takes it; its shape is not static."""


@dataclass(frozen=True)
class ForcingUse:
    """A use that forces the reduction: its reader needs the value reduced.

    Attributes:
      sentence: why it cannot take the pair.
      reader: the op that reads the value.
      culprit: the op at fault, when it is another.
      illegal: whether a legality condition failed (a remark ``blocked``, not ``missed``).
      need: what kind of reason that is, for advice.
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
        """Places the pairs of some places can travel to, nearest first, the starts among them."""
        return reachable(starts, lambda place: self.edges.get(place, ()))

    def release(self) -> None:
        """Frees what leads where, and how often; what stays are the sources, and what ops are taken as linear in."""
        for table in (self.edges, self.forcing_uses, self.executions):
            table.clear()

    def meets(self, values: AbstractSet[ir.Value]) -> bool:
        """Whether some values are in the flow, or made by an op that reads a value of it."""
        readers = (use.reader for uses in self.forcing_uses.values() for use in uses)
        return (any(place.value in values for place in self.executions)
                or any(result in values for reader in readers for result in reader.results))
