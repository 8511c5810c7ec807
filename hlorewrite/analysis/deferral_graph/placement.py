"""Chooses where to reduce: the cheapest set of places that cuts every path from an all-reduce to a forcing use (a
minimum vertex cut).

The cost is the bytes that a program is expected to send: a branch of n counts 1/n, a loop with an unknown trip count
eight iterations. The cut of least expected cost may send more on some path. By default, paths on which a cut would send
more get an increasing weight until a cut is no worse on any path.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ProgramPoint
from hlorewrite.analysis.deferral_graph.max_flow import FlowNetwork
from hlorewrite.analysis.deferral_graph.path_regressions import PathRegression, block_of, path_regression
from hlorewrite.ir import ir, tensor_bytes

Cost = Callable[[int], float]
"""Bytes of one all-reduce -> its cost, in any unit."""

CALL_BYTES = 2.0**-20
"""Cost of one call of a collective in addition to its bytes, so small that it decides only between equal bytes."""


def executed_bytes(size: int) -> float:
    """The default cost of one all-reduce: its bytes, and a little for the call."""
    return float(size + CALL_BYTES)


@dataclass(frozen=True)
class ReductionPlacement:
    """Where the reductions of a flow go.

    Attributes:
      deferred: places whose values stay unreduced.
      reduced: places at which a reduction is to be made; sources among them stay as they are.
      touched: both, nearest to the sources first; an order that is the same in every process.
      before: expected cost of the reductions in their present places.
      after: expected cost as placed.
      only_expected: all-reduces that stay because moving them costs less in expectation and more on this path.
      least: whether no placement has a lower expected cost; one may if this one had to be no worse on any path.
    """

    deferred: frozenset[ProgramPoint]
    reduced: frozenset[ProgramPoint]
    touched: tuple[ProgramPoint, ...]
    before: float
    after: float
    only_expected: dict[ir.Value, PathRegression] = field(default_factory=dict)
    least: bool = False

    @property
    def moves(self) -> bool:
        """Whether anything changes."""
        return bool(self.deferred)


_UNIT = 2.0**-24
_ROUNDS = 8
"""Number of times that the weight of worse paths is raised before a reduction stays in place."""


def place(flow: DeferralGraph, cost: Cost = executed_bytes, *, bound: Cost = float,
          expected: bool = False) -> ReductionPlacement:
    """Chooses where to reduce.

    Among equally cheap choices it takes the one nearest to the all-reduces as they are, so that nothing moves without
    a gain. Reductions whose flows meet are placed together, others separately.

    Args:
      flow: the flow of one class of reductions.
      cost: the cost of one all-reduce by its bytes.
      bound: the cost of one all-reduce by its bytes that must not grow on any path.
      expected: accept placements of lower expected cost that cost more on some path.

    Returns:
      The placement. ``after`` is never above ``before``; and unless ``expected``, the sum of ``bound`` is no larger
      than before for any outcome of the branches and any trip count of at least one.
    """
    numbered = NumberedFlow(flow)
    prices = _Prices(flow, numbered, cost, bound)
    parts = joined_parts(range(len(numbered.places)), numbered.targets, len(numbered.places))
    local = array("i", bytes(4 * len(numbered.places)))
    cuts = [_PartCutter(numbered, part, local, prices).cut(expected) for part in parts]
    near, deferred = bytearray(len(numbered.places)), bytearray(len(numbered.places))
    for part, cut in zip(parts, cuts, strict=True):
        for index, number in enumerate(part):
            near[number], deferred[number] = cut.near[index], cut.deferred[index]
    touched = tuple(compress(numbered.places, near))
    stays = frozenset(compress(numbered.places, deferred))
    worse = {value: path for cut in cuts for value, path in cut.only_expected.items()}
    return ReductionPlacement(stays, frozenset(place for place in touched if place not in stays), touched,
                              before=sum(cut.before for cut in cuts), after=sum(cut.after for cut in cuts),
                              only_expected=worse, least=all(cut.least for cut in cuts))


class _Prices:
    """The cost of a reduction at each place of a flow; equal costs share one object.

    Attributes:
      weight: expected cost at each place.
      bound: what must not grow on any path, in units, each time each place is passed.
    """

    def __init__(self, flow: DeferralGraph, numbered: NumberedFlow, cost: Cost, bound: Cost) -> None:
        types = [place.value.type for place in numbered.places]
        bytes_of = {type_: tensor_bytes(type_) for type_ in set(types)}
        sizes = [bytes_of[type_] for type_ in types]
        costs = {size: cost(size) for size in set(sizes)}
        bounds = {size: round(bound(size) / _UNIT) for size in costs}
        self.weight = array("d", (flow.executions[place] * costs[size]
                                  for place, size in zip(numbered.places, sizes, strict=True)))
        self.bound = [bounds[size] for size in sizes]


@dataclass(frozen=True)
class _Cut:
    """A cut of one part: for each place whether it lies up to the cut, whether before it, and the cut's cost."""

    near: bytearray
    deferred: bytearray
    before: float
    after: float
    only_expected: dict[ir.Value, PathRegression] = field(default_factory=dict)
    least: bool = False

    def is_reduced(self, index: int) -> bool:
        """Whether a reduction is made at a place."""
        return self.near[index] > self.deferred[index]


class _PartCutter:
    """Cuts one connected part of a flow; its places are in the order of the flow, sources first.

    Args:
      flow: the flow.
      part: the numbers of its places in the flow. Here a place is known by its index in this list.
      local: the index of each place of the flow in its part; filled in for this one.
      prices: the prices of all places of the flow.
    """

    def __init__(self, flow: NumberedFlow, part: array[int], local: array[int], prices: _Prices) -> None:
        self.flow = flow
        self.part = part
        self.local = local
        for index, number in enumerate(part):
            local[number] = index
        self.sources = [index for index, number in enumerate(part) if flow.is_source[number]]
        self.weight = array("d", (prices.weight[number] for number in part))
        self.bound = [prices.bound[number] for number in part]
        self.before = sum(self.weight[index] for index in self.sources)

    def cut(self, expected: bool) -> _Cut:
        """The cheapest cut in expectation, among those that are no worse on any path unless ``expected``."""
        first = replace(self._minimum([], 0, set()), least=True)
        path = None if expected else self._worse(first, range(len(self.part)))
        if path is None:
            return first
        found = self._no_worse(path)
        if found.after >= found.before:
            found = self._as_it_is()
        left = {self._place(index).value: path for index in self.sources
                if first.deferred[index] and not found.deferred[index]}
        return replace(found, only_expected=left if first.after < first.before else {})

    def _no_worse(self, path: PathRegression) -> _Cut:
        """A cut that is worse on no path, found by adding weight to worse paths; sources that are still worse stay in
        place."""
        paths, penalty = [path], 1
        for _ in range(_ROUNDS):
            cut = self._minimum(paths, penalty, set())
            worse = self._worse(cut, range(len(self.part)))
            if worse is None:
                return cut
            paths.append(worse)
            penalty *= 8
        staying: set[int] = set()
        while True:  # Ends: each round keeps a source that was not kept, and with all of them nothing differs.
            cut = self._minimum(paths, penalty, staying)
            if self._worse(cut, range(len(self.part))) is None:
                return cut
            staying |= self._worse_sources(cut)

    def _worse_sources(self, cut: _Cut) -> set[int]:
        """The moved sources of the parts that cost more on some path: a sum is positive only if a summand is."""
        parts = joined_parts((index for index in range(len(self.part)) if cut.near[index]),
                             lambda index: self._targets(index) if cut.deferred[index] else (), len(self.part))
        sources = set(self.sources)
        return {index for part in parts if self._worse(cut, part) is not None
                for index in part if index in sources and cut.deferred[index]}

    def _worse(self, cut: _Cut, among: Iterable[int]) -> PathRegression | None:
        """A path on which a cut of some places costs more than leaving their sources in place."""
        moved: list[tuple[ir.Block, int]] = []
        made: list[tuple[ir.Block, int]] = []
        for index in among:
            is_source, is_reduced = self.flow.is_source[self.part[index]], cut.is_reduced(index)
            if is_source and not is_reduced:
                moved.append((block_of(self._place(index)), -self.bound[index]))
            elif is_reduced and not is_source:
                made.append((block_of(self._place(index)), self.bound[index]))
        return path_regression([*moved, *made])

    def _as_it_is(self) -> _Cut:
        near = bytearray(len(self.part))
        for index in self.sources:
            near[index] = 1
        return _Cut(near, bytearray(len(self.part)), self.before, self.before)

    def _place(self, index: int) -> ProgramPoint:
        return self.flow.places[self.part[index]]

    def _targets(self, index: int) -> list[int]:
        return [self.local[number] for number in self.flow.targets(self.part[index])]

    def _minimum(self, paths: list[PathRegression], penalty: int, staying: set[int]) -> _Cut:
        """The minimum cut, with the costs on some paths weighed in."""
        capacity = self._capacities(paths, penalty)
        endless, count = sum(capacity) + 1, len(self.part)
        source, sink = 2 * count, 2 * count + 1
        network = FlowNetwork(2 * count + 2)
        for index, number in enumerate(self.part):
            network.add(2 * index, 2 * index + 1, capacity[index])
            if self.flow.is_forced[number] or index in staying:
                network.add(2 * index + 1, sink, endless)
            for target in self._targets(index):
                network.add(2 * index + 1, 2 * target, endless)
        for index in self.sources:
            network.add(source, 2 * index, endless)
        reached = network.source_side(source, sink)
        near, deferred = reached[:source:2], reached[1:source:2]
        after = sum(self.weight[index] for index in range(count) if near[index] > deferred[index])
        return _Cut(near, deferred, self.before, after)

    def _capacities(self, paths: list[PathRegression], penalty: int) -> list[int]:
        units = {weight: max(1, round(weight / _UNIT)) for weight in set(self.weight)}
        capacity = [units[weight] for weight in self.weight]
        for path in paths:
            for index, bound in enumerate(self.bound):
                capacity[index] += round(penalty * path.executions(block_of(self._place(index))) * bound)
        return capacity


# ---- A flow with numbered places, on which cuts are computed without an object for each place and edge


class NumberedFlow:
    """The places of a flow, nearest to its sources first, each known by its number in this order.

    Args:
      flow: the flow.

    Attributes:
      places: the places.
      is_source: for each place 1 if it is the result of an all-reduce of the flow.
      is_forced: for each place 1 if a reader needs it reduced.
    """

    def __init__(self, flow: DeferralGraph) -> None:
        starts = [ProgramPoint(value) for value in flow.sources]
        self.places = list(flow.reachable(starts))
        self.is_source = bytearray(len(self.places))
        self.is_forced = bytearray(place in flow.forcing_uses for place in self.places)
        self._first, self._targets = array("i", [0]), array("i")
        number = {place: index for index, place in enumerate(self.places)}
        for start in starts:
            self.is_source[number[start]] = 1
        for place in self.places:
            self._targets.extend(dict.fromkeys(number[target] for target in flow.edges.get(place, ())))
            self._first.append(len(self._targets))

    def targets(self, place: int) -> Sequence[int]:
        """The places that the pair of a place travels to, each once."""
        return self._targets[self._first[place]:self._first[place + 1]]


def joined_parts(members: Iterable[int], targets: Callable[[int], Iterable[int]], count: int) -> list[array[int]]:
    """Connected components of some places.

    Args:
      members: the places asked about, in ascending order.
      targets: the members that one leads to.
      count: a number above all places.

    Returns:
      The parts in the order of their first members, each in ascending order.

    Example:
      >>> [list(part) for part in joined_parts([0, 1, 2, 4], lambda place: [4] if place == 0 else [], 5)]
      [[0, 4], [1], [2]]
    """
    parent = array("i", range(count))

    def root(place: int) -> int:
        while parent[place] != place:  # ends: parents have smaller numbers
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    kept = array("i", members)
    for place in kept:
        for target in targets(place):
            one, other = root(place), root(target)
            parent[max(one, other)] = min(one, other)
    parts: dict[int, array[int]] = {}
    for place in kept:
        parts.setdefault(root(place), array("i")).append(place)
    return list(parts.values())
