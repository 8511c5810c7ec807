"""How much worse one placement of collectives can be than another, over every path that a program can take.

Compares the bytes that two placements send, block by block. Let ``D(block)`` be the largest excess of the second over
the first when the block is run once. It follows the structure of the program, since the decisions of ops are
independent:

* a block adds its own difference and the ``D`` of the ops in it;
* branches: the largest ``D``, or the weighted mean if it is known how often each is taken;
* a loop of n iterations: ``n D(body) + (n + 1) D(condition)``;
* a loop of unknown count t >= 1: ``t (D(body) + D(condition)) + D(condition)``: at t = 1 if the bracket is not
  positive, else without bound.

At most 0 means: never more, for any outcome of branches and any trip count of at least one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from hlorewrite.analysis.block_frequency import taken_shares, times_of_block
from hlorewrite.analysis.deferral_graph.graph import ProgramPoint
from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir import BRANCHES, View, ir, op_key

_LOOP = "stablehlo.while"
_OFTEN = 1 << 100
"""The trip count of an unbounded loop: no sum of bytes can outweigh this many iterations."""


@dataclass(frozen=True)
class PathRegression:
    """A path on which one program costs more than another.

    Attributes:
      times: block -> how often the path runs it, for blocks in which the two programs differ and those around.
      decides: the outermost loop or branch at which the path decides; None when every path costs more.
      decision: the decision of the path there, as the end of a sentence.
    """

    times: Mapping[ir.Block, Fraction]
    decides: ir.Operation | None
    decision: str

    def words(self, view: View) -> str:
        """The path as part of a sentence."""
        if self.decides is None:
            return "every path"
        where = f"{self.decides.name} {view.whereabouts(self.decides)}".rstrip()
        return f"a path on which {where} {self.decision}"

    def executions(self, block: ir.Block) -> Fraction:
        """How often the path runs a block; as often as expected if the path does not say."""
        if block in self.times:
            return self.times[block]
        parent = block.owner.operation
        if is_outermost(parent):
            return Fraction(1)
        return self.executions(parent.block) * Fraction(times_of_block(block)[0])


def block_of(place: ProgramPoint) -> ir.Block:
    """The block in which a place is passed."""
    if place.branch is not None:
        return place.branch
    owner = place.value.owner
    return owner if isinstance(owner, ir.Block) else owner.operation.block


def is_outermost(op: ir.Operation) -> bool:
    """Whether the inside of an op counts as run once: functions, manual regions and ops without control flow."""
    return op.name in ("func.func", "sdy.manual_computation", "builtin.module")


def path_regression(excess: Iterable[tuple[ir.Block, int]]) -> PathRegression | None:
    """A path on which one program costs more than another.

    Args:
      excess: for each block, the excess cost of the second program in one run; negative if it costs less.

    Returns:
      The path on which it costs most beyond the first; None when it costs no more on any path.
    """
    differs: dict[ir.Block, int] = {}
    for block, cost in excess:
        differs[block] = differs.get(block, 0) + cost
    tree = _Tree(differs)
    return tree.path() if tree.excess() > 0 else None


class _Tree:
    """The blocks in which two placements differ, and all blocks around these."""

    def __init__(self, differs: Mapping[ir.Block, int]) -> None:
        self.differs = differs
        self.roots: list[ir.Block] = []
        self.inside: dict[ir.Block, dict[int, ir.Operation]] = {}
        for block in differs:
            self._add(block)
        self._known: dict[ir.Block, Fraction] = {}

    def _add(self, block: ir.Block) -> None:
        if block in self.inside:
            return
        self.inside[block] = {}
        parent = block.owner.operation
        if is_outermost(parent):
            self.roots.append(block)
            return
        self._add(parent.block)
        self.inside[parent.block][op_key(parent)] = parent

    def excess(self) -> Fraction:
        """The largest excess on any path."""
        return sum(map(self._of_block, self.roots), Fraction(0))

    def _of_block(self, block: ir.Block) -> Fraction:
        if block not in self.inside:
            return Fraction(0)
        if block not in self._known:
            self._known[block] = sum(map(self._of_op, self.inside[block].values()),
                                     Fraction(self.differs.get(block, 0)))
        return self._known[block]

    def _of_op(self, op: ir.Operation) -> Fraction:
        parts = [self._of_block(region.blocks[0]) for region in op.regions]
        if op.name in BRANCHES:
            return sum((part * share for part, share in zip(parts, self._shares(op, parts), strict=True)), Fraction(0))
        if op.name != _LOOP:
            return sum(parts, Fraction(0))
        trips = self._trips(op)
        return trips * parts[1] + (trips + 1) * parts[0]

    @staticmethod
    def _shares(op: ir.Operation, parts: list[Fraction]) -> tuple[Fraction, ...]:
        """How often each branch is taken: the known shares, or always the costliest."""
        known = taken_shares(op)
        if known is not None:
            return known
        worst = parts.index(max(parts))
        return tuple(Fraction(number == worst) for number in range(len(parts)))

    def _trips(self, op: ir.Operation) -> int:
        """The number of iterations at which a loop costs most."""
        known = trip_count(op)
        if known is not None:
            return known
        return _OFTEN if sum(self._of_block(region.blocks[0]) for region in op.regions) > 0 else 1

    def path(self) -> PathRegression:
        """The path of the largest excess."""
        times: dict[ir.Block, Fraction] = {}
        decisions: list[tuple[ir.Operation, str]] = []
        pending = [(root, Fraction(1)) for root in self.roots]
        for block, often in pending:  # Ends: blocks are added below a block only, and each is in one op.
            times[block] = often
            for op in self.inside.get(block, {}).values():
                pending += self._below(op, often, decisions)
        decides, decision = decisions[0] if decisions else (None, "")
        return PathRegression(times, decides, decision)

    def _below(self, op: ir.Operation, often: Fraction,
               decisions: list[tuple[ir.Operation, str]]) -> list[tuple[ir.Block, Fraction]]:
        blocks = [region.blocks[0] for region in op.regions]
        parts = [self._of_block(block) for block in blocks]
        if op.name in BRANCHES:
            shares = self._shares(op, parts)
            if len(set(parts)) > 1 and taken_shares(op) is None:
                decisions.append((op, f"takes branch {shares.index(1)}"))
            return [(block, often * share) for block, share in zip(blocks, shares, strict=True)]
        if op.name != _LOOP:
            return [(block, often) for block in blocks]
        trips = self._trips(op)
        if trip_count(op) is None and any(parts):
            decisions.append((op, "runs once" if trips == 1 else "runs many times"))
        return [(blocks[0], often * (trips + 1)), (blocks[1], often * trips)]
