"""Where to reduce: the cheapest places that every path from an all-reduce to a need passes (a minimum vertex cut)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlorewrite.spmd.flow import Flow, Place
from hlorewrite.spmd.max_flow import FlowNetwork
from hlorewrite.spmd.types import tensor_bytes

Cost = Callable[[int], float]
"""Bytes of one all-reduce -> its cost, in any unit."""

CALL_BYTES = 2.0**-20
"""What one call of a collective costs beside its bytes: so little that it decides only between equal bytes."""


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
      before: cost of the reductions as they are.
      after: cost as placed.
    """

    deferred: frozenset[Place]
    reduced: frozenset[Place]
    touched: tuple[Place, ...]
    before: float
    after: float

    @property
    def moves(self) -> bool:
        """Whether anything changes."""
        return bool(self.deferred)


_UNIT = 2.0**-24
_ENDLESS = 1 << 120


def place(flow: Flow, cost: Cost = executed_bytes) -> ReductionPlacement:
    """Chooses where to reduce.

    Among equally cheap choices it takes the one nearest to the all-reduces as they are, so that nothing moves without
    a gain.

    Args:
      flow: the flow of one class of reductions.
      cost: the cost of one all-reduce by its bytes.

    Returns:
      The placement; ``after`` is never above ``before``.
    """
    places = list(flow.reachable([Place(value) for value in flow.sources]))
    number = {p: index for index, p in enumerate(places)}
    weight = [flow.executions[p] * cost(tensor_bytes(p.value.type)) for p in places]
    source, sink = 2 * len(places), 2 * len(places) + 1
    network = FlowNetwork(2 * len(places) + 2)
    for index, p in enumerate(places):
        network.add(2 * index, 2 * index + 1, max(1, round(weight[index] / _UNIT)))
        if p in flow.forcing_uses:
            network.add(2 * index + 1, sink, _ENDLESS)
        for target in dict.fromkeys(flow.edges.get(p, ())):
            network.add(2 * index + 1, 2 * number[target], _ENDLESS)
    for value in dict.fromkeys(flow.sources):
        network.add(source, 2 * number[Place(value)], _ENDLESS)
    before = sum(weight[number[Place(value)]] for value in dict.fromkeys(flow.sources))
    near = network.source_side(source, sink)
    touched = tuple(p for p in places if 2 * number[p] in near)
    deferred = frozenset(p for p in touched if 2 * number[p] + 1 in near)
    reduced = [p for p in touched if p not in deferred]
    return ReductionPlacement(deferred, frozenset(reduced), touched, before, sum(weight[number[p]] for p in reduced))


