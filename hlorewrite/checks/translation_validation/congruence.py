"""The nodes that are equal: the coarsest partition in which equal nodes have equal labels and equal operands.

Streams are equal when they start equal and go on equal. A partition that a round of refinement leaves alone proves that
by induction over the iterations: equal in all iterations before, they are equal in the next.

Programs have as many nodes as ops, or more. So what is kept for each node is in arrays: a list or a set for each
would take more memory than the graph.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

from hlorewrite.checks.value_graph.graph import Graph, Label
from hlorewrite.ops.table import COMMUTATIVE

_IN_ANY_ORDER = COMMUTATIVE | {"sum", "product"}
"""Nodes whose operands may be exchanged; the last two are made by ``value_graph.views``."""

APART = -1
"""The class of nodes that are not compared."""


def refine_partition(graph: Graph, roots: Sequence[int], pairs: Sequence[tuple[int, int]]) -> array[int]:
    """The class of each node that is reachable from some nodes.

    Args:
      graph: the graph; every stream in reach has its yield.
      roots: the nodes to begin with.
      pairs: the nodes in question; once one pair is separated, classes are not split further.

    Returns:
      Node -> number of its class; ``APART`` for nodes out of reach.
    """
    streams, others = _order(graph, roots)
    colors, recurrent, moving, fixed = _filled(len(graph.labels)), bytearray(len(graph.labels)), _Moving(), 0
    for stream in streams:
        recurrent[stream] = True
        moving.add(stream, (graph.args[stream][0], graph.yields[stream]))
    for node in others:
        args = graph.args[node]
        for arg in args:
            if recurrent[arg]:
                recurrent[node] = True
                moving.add(node, args)
                break
        else:  # what no stream is below is equal only to itself
            colors[node] = fixed
            fixed += 1
    return _Refinement(graph, colors, moving, len(streams), fixed, pairs).run()


def _filled(count: int) -> array[int]:
    return array("i", [APART]) * count


class _Moving:
    """Streams and the nodes above them, numbered by place, each with the nodes whose classes it is compared by.

    Attributes:
      nodes: which ones, streams first, operands before readers.
    """

    def __init__(self) -> None:
        self.nodes = array("i")
        self._below = array("i")
        self._ends = array("i", [0])

    def add(self, node: int, below: tuple[int, ...]) -> None:
        """Appends a node."""
        self.nodes.append(node)
        self._below.extend(below)
        self._ends.append(len(self._below))

    def below(self, place: int) -> array[int]:
        """The nodes by which a node is compared."""
        return self._below[self._ends[place]:self._ends[place + 1]]

    def read(self, count: int) -> tuple[array[int], array[int]]:
        """The nodes that are compared by each node.

        Args:
          count: how many nodes there are.

        Returns:
          ``ends``, ``places``: the places of those that are compared by node n are ``places[ends[n]:ends[n + 1]]``.
        """
        ends = array("i", [0]) * (count + 2)
        for node in self._below:
            ends[node + 2] += 1
        for node in range(2, count + 2):
            ends[node] += ends[node - 1]
        places = array("i", [0]) * len(self._below)
        for place in range(len(self.nodes)):
            for node in self.below(place):
                places[ends[node + 1]] = place
                ends[node + 1] += 1
        return ends, places


class _Refinement:
    """Splits classes round by round if the classes of operands have changed; everything else is kept.

    In each round the streams are compared first, by the classes of the round before, and then the nodes above them.
    If a class of streams splits, the largest part keeps the class's number. So a stream is compared again only when its
    class has at most half the size (Hopcroft 1971). Other nodes have a number for each signature.

    Args:
      graph: the graph.
      colors: the classes of the nodes that no stream is below; the others are added.
      moving: the streams, and the other nodes that are above streams.
      count: how many streams there are.
      first: the class they begin in; numbers above it are free.
      pairs: nodes that are asked about.
    """

    def __init__(self, graph: Graph, colors: array[int], moving: _Moving, count: int, first: int,
                 pairs: Sequence[tuple[int, int]]) -> None:
        self.colors = colors
        self.moving = moving
        self.order = moving.nodes
        self.count = count
        self.fresh = first
        self.pairs = pairs
        self.classes = _Classes(count, first)
        self.commutes = bytearray(len(self.order))
        self.dirty = bytearray(len(self.order))
        sorts: dict[object, int] = {}
        self.sorts = array("i")
        for place, node in enumerate(self.order):
            colors[node] = first
            label = graph.labels[node]
            self.commutes[place] = label[0] in _IN_ANY_ORDER
            self.sorts.append(sorts.setdefault((label, graph.types[node]), len(sorts)))
        self.numbers: dict[bytes, int] = {}
        self.ends, self.places = moving.read(len(colors))

    def run(self) -> array[int]:
        """The class of each node."""
        apart = [(a, b) for a, b in self.pairs if self.colors[a] != self.colors[b]]
        partners: dict[int, list[int]] = {}
        for a, b in self.pairs:
            partners.setdefault(a, []).append(b)
            partners.setdefault(b, []).append(a)
        streams, nodes = (self._marked(range(*bounds)) for bounds in ((0, self.count), (self.count, len(self.order))))
        # Ends: each round but the last makes more classes, of which there are at most as many as nodes.
        while streams or nodes:
            changed = self._split(streams)
            nodes.extend(self._marked(place for place in self._read(changed) if place >= self.count))
            changed.extend(self._renumber(nodes))
            if apart or any(self.colors[n] != self.colors[other] for n in changed for other in partners.get(n, ())):
                break
            streams = self._marked(place for place in self._read(changed) if place < self.count)
            nodes = array("i")
        return self.colors

    def _read(self, nodes: Iterable[int]) -> Iterator[int]:
        """The places of what is compared by some nodes."""
        return (place for node in nodes for place in self.places[self.ends[node]:self.ends[node + 1]])

    def _marked(self, places: Iterable[int]) -> array[int]:
        """Those among some places that are not marked yet; they are now."""
        found = array("i")
        for place in places:
            if not self.dirty[place]:
                self.dirty[place] = True
                found.append(place)
        return found

    def _number(self) -> int:
        self.fresh += 1
        return self.fresh

    def _split(self, streams: array[int]) -> array[int]:
        """Splits the classes of marked streams, around which something changed; returns what has a new class."""
        parts: dict[int, dict[bytes, array[int]]] = {}
        for place in sorted(streams):
            groups = parts.setdefault(self.colors[self.order[place]], {})
            groups.setdefault(self._signature(place), array("i")).append(place)
        leaving: list[array[int]] = []
        for color, groups in parts.items():
            members = self.classes.of(color)
            resting, rest = len(members) - sum(map(len, groups.values())), None
            sizes = {signature: len(group) for signature, group in groups.items()}
            if resting:  # they have one signature: around them nothing changed
                rest = self._signature(next(place for place in members if not self.dirty[place]))
                sizes[rest] = sizes.get(rest, 0) + resting
            kept = max(sizes, key=sizes.__getitem__)
            if rest is not None and kept != rest:
                groups.setdefault(rest, array("i")).extend(place for place in members if not self.dirty[place])
            leaving += [group for signature, group in groups.items() if signature != kept]
        for place in streams:
            self.dirty[place] = False
        return array("i", [node for group in leaving for node in self._moved(group)])

    def _moved(self, group: array[int]) -> list[int]:
        """Puts streams of one class into a new one; returns their nodes."""
        nodes = [self.order[place] for place in group]
        old, new = self.colors[nodes[0]], self._number()
        self.classes.part(old, new, group)
        for node in nodes:
            self.colors[node] = new
        return nodes

    def _renumber(self, nodes: array[int]) -> array[int]:
        """Gives marked nodes above streams the numbers of their signatures, operands first; returns what changed."""
        nodes, at, later, changed = array("i", sorted(nodes)), 0, list[int](), array("i")
        # Ends: operands come before readers, and a node is added at most once, by what is before it.
        while at < len(nodes) or later:
            if later and (at == len(nodes) or later[0] < nodes[at]):
                place = heappop(later)
            else:
                place, at = nodes[at], at + 1
            self.dirty[place] = False
            node = self.order[place]
            color = self.numbers.setdefault(self._signature(place), self.fresh + 1)
            self.fresh = max(self.fresh, color)
            if color == self.colors[node]:
                continue
            self.colors[node] = color
            changed.append(node)
            for reader in self._read((node,)):
                if reader >= self.count and not self.dirty[reader]:
                    self.dirty[reader] = True
                    heappush(later, reader)
        return changed

    def _signature(self, place: int) -> bytes:
        """What equal nodes have in common, and equal streams of one class."""
        colors = [self.colors[below] for below in self.moving.below(place)]
        if self.commutes[place]:
            colors.sort()
        colors.append(self.sorts[place])
        return array("i", colors).tobytes()


class _Classes:
    """Classes of streams, by their places: each is a range of one array.

    Args:
      count: how many streams there are.
      first: the class all of them begin in.
    """

    def __init__(self, count: int, first: int) -> None:
        self._members = array("i", range(count))
        self._at = array("i", range(count))
        self._ranges: dict[int, tuple[int, int]] = {first: (0, count)}

    def of(self, color: int) -> array[int]:
        """The members of a class."""
        begin, end = self._ranges[color]
        return self._members[begin:end]

    def part(self, old: int, new: int, group: Sequence[int]) -> None:
        """Moves some members of a class to a new one."""
        begin, end = self._ranges[old]
        for place in group:
            end -= 1
            at, other = self._at[place], self._members[end]
            self._members[at], self._at[other] = other, at
            self._members[end], self._at[place] = place, end
        self._ranges[old], self._ranges[new] = (begin, end), (end, end + len(group))


def _order(graph: Graph, roots: Sequence[int]) -> tuple[array[int], array[int]]:
    """All nodes in reach: streams, and the others, operands before readers."""
    streams, others, seen = array("i"), array("i"), bytearray(len(graph.labels))
    pending, followed = list(roots), 0
    # Ends: the arguments of a stream are added once, when it is first seen.
    while pending:
        _visit(graph, pending.pop(), seen, others, streams)
        for stream in streams[followed:]:
            pending += (graph.args[stream][0], graph.yields[stream])
        followed = len(streams)
    return streams, others


def _visit(graph: Graph, root: int, seen: bytearray, others: array[int], streams: array[int]) -> None:
    stack = [root]
    # Ends: the arguments of a node are added once, and it a second time, as ``~node``.
    while stack:
        node = stack.pop()
        if node < 0:
            others.append(~node)
            continue
        if seen[node]:
            continue
        seen[node] = True
        if graph.labels[node][0] == "stream":
            streams.append(node)
            continue
        stack.append(~node)
        stack.extend(arg for arg in graph.args[node] if not seen[arg])


def check_partition(graph: Graph, colors: Sequence[int], pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether a proposed partition proves that pairs of nodes are equal; trusts nothing about how it was found.

    Args:
      graph: the graph.
      colors: the proposed class of every node in reach of the pairs; ``APART`` for nodes that nothing is claimed of.
      pairs: nodes claimed to be equal.
    """
    first = _filled(max(colors, default=0) + 1)
    for node, color in enumerate(colors):
        if color == APART:
            continue
        other = first[color]
        if other == APART:
            first[color] = node
            if any(colors[each] == APART for each in _below(graph, node)):
                return False
        elif _held(graph, colors, node) != _held(graph, colors, other):
            return False
    return all(colors[a] == colors[b] != APART for a, b in pairs)


def _below(graph: Graph, node: int) -> tuple[int, ...]:
    """What a node is computed from."""
    return graph.args[node] if graph.labels[node][0] != "stream" else (*graph.args[node], graph.yields[node])


def _held(graph: Graph, colors: Sequence[int], node: int) -> tuple[Label, str, list[int]]:
    """What the nodes of a class have in common: label, type, and the classes of their operands."""
    label = graph.labels[node]
    held = [colors[each] for each in _below(graph, node)]
    if label[0] in _IN_ANY_ORDER:
        held.sort()
    return label, graph.types[node], held
