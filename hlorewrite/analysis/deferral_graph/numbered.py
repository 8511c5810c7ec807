"""A flow with its places as numbers: what a cut is computed on, without an object for each place and edge."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence

from hlorewrite.analysis.deferral_graph.graph import DeferralGraph
from hlorewrite.analysis.deferral_graph.program_point import ProgramPoint


class NumberedFlow:
    """The places of a flow, nearest to its sources first, each known by its number in this order.

    Args:
      flow: the flow.

    Attributes:
      places: the places.
      is_source: for each place 1 where it is the result of an all-reduce of the flow.
      is_forced: for each place 1 where a reader needs it reduced.
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
    """Places that hang together.

    Args:
      members: the places asked about, in ascending order.
      targets: the places that one leads to, members too.
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
