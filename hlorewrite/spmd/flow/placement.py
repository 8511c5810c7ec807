"""Where to reduce: the cheapest places that every path from an all-reduce to a need passes (a minimum vertex cut).

Cheapest is what a program is expected to send: a branch of n counts 1/n, a loop of unknown count eight iterations. The
cut with the least expectation may send more on some path. By default that is not accepted: paths on which a cut would
send more are weighed in, more and more, until a cut is found that is no worse on any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from hlorewrite.ir.binding import ir
from hlorewrite.spmd.flow.graph import Flow
from hlorewrite.spmd.flow.max_flow import FlowNetwork
from hlorewrite.spmd.flow.paths import WorsePath, block_of, worse_path
from hlorewrite.spmd.flow.places import Place
from hlorewrite.spmd.types import tensor_bytes

Cost = Callable[[int], float]
"""Bytes of one all-reduce -> its cost, in any unit."""

CALL_BYTES = 2.0**-20
"""What one call of a collective costs in addition to its bytes: so little that it decides only between equal bytes."""


def executed_bytes(size: int) -> float:
    """The default cost of one all-reduce: its bytes, and a little for the call."""
    return float(size + CALL_BYTES)


@dataclass(frozen=True)
class ReductionPlacement:
    """Where the reductions of a flow go.

    Attributes:
      deferred: places whose values stay unreduced.
      reduced: places at which a reduction is to be made; sources among them stay as they are.
      touched: both, nearest to the sources first; who walks over them takes this order, the same in every process.
      before: expected cost of the reductions as they are.
      after: expected cost as placed.
      only_expected: all-reduces that stay because moving them costs less in expectation and more on this path.
      least: whether no placement costs less in expectation; one may where this one had to be no worse on any path.
    """

    deferred: frozenset[Place]
    reduced: frozenset[Place]
    touched: tuple[Place, ...]
    before: float
    after: float
    only_expected: dict[ir.Value, WorsePath] = field(default_factory=dict)
    least: bool = False

    @property
    def moves(self) -> bool:
        """Whether anything changes."""
        return bool(self.deferred)


_UNIT = 2.0**-24
_ROUNDS = 8
"""How often the weight of worse paths is raised before what is worse stays where it is."""


def place(flow: Flow, cost: Cost = executed_bytes, *, bound: Cost = float,
          expected: bool = False) -> ReductionPlacement:
    """Chooses where to reduce.

    Among equally cheap choices it takes the one nearest to the all-reduces as they are, so that nothing moves without
    a gain. Reductions whose flows meet are decided together, others apart.

    Args:
      flow: the flow of one class of reductions.
      cost: the cost of one all-reduce by its bytes.
      bound: what must not grow on any path, of one all-reduce by its bytes.
      expected: accept what costs less in expectation, though more on some path.

    Returns:
      The placement. ``after`` is never above ``before``; and unless ``expected``, the sum of ``bound`` is no larger
      than before for any outcome of the branches and any trip count of at least one.
    """
    places = list(flow.reachable([Place(value) for value in flow.sources]))
    sources = frozenset(Place(value) for value in flow.sources)
    cuts = [_PartCutter(flow, part, sources, cost, bound).cut(expected) for part in _parts(places, flow.edges)]
    near = {place for cut in cuts for place in cut.near}
    deferred = frozenset(place for cut in cuts for place in cut.deferred)
    touched = tuple(p for p in places if p in near)
    worse = {value: path for cut in cuts for value, path in cut.only_expected.items()}
    return ReductionPlacement(deferred, frozenset(near - deferred), touched, sum(cut.before for cut in cuts),
                              sum(cut.after for cut in cuts), worse, all(cut.least for cut in cuts))


def _parts(places: Iterable[Place], edges: dict[Place, list[Place]]) -> list[list[Place]]:
    """Places that hang together, each part in the order given."""
    kept = list(places)
    beside: dict[Place, list[Place]] = {}
    for start in kept:
        for target in edges.get(start, ()):
            beside.setdefault(start, []).append(target)
            beside.setdefault(target, []).append(start)
    number: dict[Place, int] = {}
    for place in kept:
        if place in number:
            continue
        number[place] = part = len(number)
        pending = [place]
        for reached in pending:  # Ends: a place is added once.
            for other in beside.get(reached, ()):
                if other not in number:
                    number[other] = part
                    pending.append(other)
    parts: dict[int, list[Place]] = {}
    for place in kept:
        parts.setdefault(number[place], []).append(place)
    return list(parts.values())


@dataclass(frozen=True)
class _Cut:
    """A cut of one part: the places up to it, those before it, and what it costs."""

    near: frozenset[Place]
    deferred: frozenset[Place]
    before: float
    after: float
    only_expected: dict[ir.Value, WorsePath] = field(default_factory=dict)
    least: bool = False

    @cached_property
    def reduced(self) -> frozenset[Place]:
        return self.near - self.deferred


class _PartCutter:
    """Cuts the part of a flow that hangs together; its places are in the order of the flow, sources first."""

    def __init__(self, flow: Flow, places: list[Place], sources: frozenset[Place], cost: Cost, bound: Cost) -> None:
        self.flow = flow
        self.places = places
        self.number = {p: index for index, p in enumerate(places)}
        self.every_source = sources
        self.sources = [p for p in places if p in sources]
        size = {p: tensor_bytes(p.value.type) for p in places}
        self.weight = {p: flow.executions[p] * cost(size[p]) for p in places}
        self.bound = {p: round(bound(size[p]) / _UNIT) for p in places}
        self.before = sum(self.weight[p] for p in self.sources)

    def cut(self, expected: bool) -> _Cut:
        """The cheapest cut in expectation, among those that are no worse on any path unless ``expected``."""
        first = replace(self._minimum([], 0, set()), least=True)
        path = None if expected else self._worse(first)
        if path is None:
            return first
        found = self._no_worse(path)
        if found.after >= found.before:
            found = self._as_it_is()
        left = {p.value: path for p in self.sources if p in first.deferred and p not in found.deferred}
        return _Cut(found.near, found.deferred, found.before, found.after, left if first.after < first.before else {})

    def _no_worse(self, path: WorsePath) -> _Cut:
        """A cut that is worse on no path, by weighing worse paths; what is still worse then stays as it is."""
        paths, penalty = [path], 1
        for _ in range(_ROUNDS):
            cut = self._minimum(paths, penalty, set())
            worse = self._worse(cut)
            if worse is None:
                return cut
            paths.append(worse)
            penalty *= 8
        staying: set[Place] = set()
        while True:  # Ends: each round keeps a source that was not kept, and with all of them nothing differs.
            cut = self._minimum(paths, penalty, staying)
            if self._worse(cut) is None:
                return cut
            staying |= self._worse_sources(cut)

    def _worse_sources(self, cut: _Cut) -> set[Place]:
        """The moved sources of those parts that cost more on some path: a sum is positive only if a summand is."""
        edges = {p: self.flow.edges.get(p, []) for p in self.places if p in cut.deferred}
        parts = [(part, frozenset(part)) for part in _parts([p for p in self.places if p in cut.near], edges)]
        worse = [part for part, near in parts
                 if self._worse(_Cut(near, near & cut.deferred, 0, 0), part) is not None]
        return {p for part in worse for p in part if p in self.every_source and p in cut.deferred}

    def _worse(self, cut: _Cut, part: list[Place] | None = None) -> WorsePath | None:
        """A path on which a cut of some places (all by default) costs more than the sources as they are."""
        places = self.places if part is None else part
        before = [p for p in places if p in self.every_source]
        kept = cut.reduced.intersection(before)
        less = [(block_of(p), -self.bound[p]) for p in before if p not in kept]
        more = [(block_of(p), self.bound[p]) for p in places if p in cut.reduced and p not in kept]
        return worse_path([*less, *more])

    def _as_it_is(self) -> _Cut:
        return _Cut(frozenset(self.sources), frozenset(), self.before, self.before)

    def _minimum(self, paths: list[WorsePath], penalty: int, staying: set[Place]) -> _Cut:
        """The minimum cut, with the costs on some paths weighed in."""
        capacity = [max(1, round(self.weight[p] / _UNIT)) for p in self.places]
        for path in paths:
            for index, p in enumerate(self.places):
                capacity[index] += round(penalty * path.executions(block_of(p)) * self.bound[p])
        endless = sum(capacity) + 1
        source, sink = 2 * len(self.places), 2 * len(self.places) + 1
        network = FlowNetwork(2 * len(self.places) + 2)
        for index, p in enumerate(self.places):
            network.add(2 * index, 2 * index + 1, capacity[index])
            if p in self.flow.forcing_uses or p in staying:
                network.add(2 * index + 1, sink, endless)
            for target in dict.fromkeys(self.flow.edges.get(p, ())):
                network.add(2 * index + 1, 2 * self.number[target], endless)
        for p in self.sources:
            network.add(source, 2 * self.number[p], endless)
        reached = network.source_side(source, sink)
        near = frozenset(p for p in self.places if 2 * self.number[p] in reached)
        deferred = frozenset(p for p in near if 2 * self.number[p] + 1 in reached)
        after = sum(self.weight[p] for p in self.places if p in near and p not in deferred)
        return _Cut(near, deferred, self.before, after)
