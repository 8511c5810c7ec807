"""The nodes that are equal: the coarsest partition in which equal nodes have equal labels and equal operands.

Streams are equal when they start equal and go on equal. A partition that a round of refinement leaves alone proves that
by induction over the iterations: equal in all iterations before, they are equal in the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from hlorewrite.validate.nodes.folds import COMMUTATIVE
from hlorewrite.validate.nodes.graph import Graph


def refined(graph: Graph, roots: Sequence[int], pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The class of each node that is reachable from some.

    Args:
      graph: the graph; every stream in reach has its yield.
      roots: the nodes to begin with.
      pairs: nodes that are asked about; once one of them is apart, classes are split no further.

    Returns:
      Node -> number of its class.
    """
    order, recurrent = _order(graph, roots)
    colors: dict[int, int] = {}
    fixed = 0
    for node in order:  # what no stream is below is equal only to itself
        if node not in recurrent:
            colors[node] = fixed
            fixed += 1
    moving = [node for node in order if node in recurrent]
    return _Refinement(graph, colors, moving, fixed, pairs).run()


class _Refinement:
    """Splits classes, round by round, where operands have come to be of other classes; what did not change is kept.

    In each round the streams are compared first, by the classes of the round before, and then the nodes above them.
    Of the parts a class of streams falls into the largest keeps its number, so that a stream is compared again no
    more often than it comes to be in a part of half the size (Hopcroft 1971). Other nodes have a number for each
    signature.

    Args:
      graph: the graph.
      colors: the classes of the nodes that no stream is below; the others are added.
      moving: the other nodes, streams first, operands before readers.
      first: the class they begin in; numbers above it are free.
      pairs: nodes that are asked about.
    """

    def __init__(self, graph: Graph, colors: dict[int, int], moving: Sequence[int], first: int,
                 pairs: Sequence[tuple[int, int]]) -> None:
        self.graph = graph
        self.colors = colors | dict.fromkeys(moving, first)
        self.place = {node: place for place, node in enumerate(moving)}
        self.order = moving
        self.fresh = first
        self.pairs = pairs
        self.streams: dict[int, set[int]] = {first: {node for node in moving if self._is_stream(node)}}
        self.numbers: dict[object, int] = {}
        self.readers: dict[int, list[int]] = {}
        self.followers: dict[int, list[int]] = {}
        for node in moving:
            below = graph.args[node] if not self._is_stream(node) else (graph.args[node][0], graph.yields[node])
            for each in below:
                (self.followers if self._is_stream(node) else self.readers).setdefault(each, []).append(node)

    def run(self) -> dict[int, int]:
        """The class of each node."""
        apart = [(a, b) for a, b in self.pairs if self.colors[a] != self.colors[b]]
        partners: dict[int, list[int]] = {}
        for a, b in self.pairs:
            partners.setdefault(a, []).append(b)
            partners.setdefault(b, []).append(a)
        streams, nodes = set(self.streams[self.fresh]), {n for n in self.order if not self._is_stream(n)}
        # Ends: each round but the last makes more classes, of which there are at most as many as nodes.
        while streams or nodes:
            changed = self._split(streams)
            for node in changed:
                nodes.update(self.readers.get(node, ()))
            changed += self._renumber(nodes)
            if apart or any(self.colors[n] != self.colors[other] for n in changed for other in partners.get(n, ())):
                break
            streams, nodes = {stream for node in changed for stream in self.followers.get(node, ())}, set()
        return self.colors

    def _is_stream(self, node: int) -> bool:
        return self.graph.labels[node][0] == "stream"

    def _number(self) -> int:
        self.fresh += 1
        return self.fresh

    def _split(self, dirty: set[int]) -> list[int]:
        """Splits the classes of some streams, those around which something changed; returns what has a new class."""
        parts: dict[int, dict[object, list[int]]] = {}
        for node in sorted(dirty, key=self.place.__getitem__):
            parts.setdefault(self.colors[node], {}).setdefault(self._of_stream(node), []).append(node)
        leaving: list[list[int]] = []
        for color, groups in parts.items():
            members = self.streams[color]
            resting, rest = len(members) - sum(map(len, groups.values())), None
            sizes = {signature: len(group) for signature, group in groups.items()}
            if resting:  # they have one signature: around them nothing changed
                rest = self._of_stream(next(node for node in members if node not in dirty))
                sizes[rest] = sizes.get(rest, 0) + resting
            kept = max(sizes, key=sizes.__getitem__)
            if resting and kept != rest:
                groups.setdefault(rest, []).extend(node for node in members if node not in dirty)
            leaving += [group for signature, group in groups.items() if signature != kept]
        return [node for group in leaving for node in self._moved(group)]

    def _moved(self, group: list[int]) -> list[int]:
        """Puts streams of one class into a new one."""
        self.streams[self.colors[group[0]]].difference_update(group)
        color = self._number()
        self.streams[color] = set(group)
        self.colors.update(dict.fromkeys(group, color))
        return group

    def _renumber(self, dirty: set[int]) -> list[int]:
        """Gives nodes above streams the numbers of their signatures, operands first; returns those that changed."""
        heap = sorted(self.place[node] for node in dirty)
        changed: list[int] = []
        # Ends: operands come before readers, and a node is added at most once, by what stands before it.
        while heap:
            node = self.order[heappop(heap)]
            color = self.numbers.setdefault(self._of_node(node), self.fresh + 1)
            self.fresh = max(self.fresh, color)
            if color == self.colors[node]:
                continue
            self.colors[node] = color
            changed.append(node)
            for reader in self.readers.get(node, ()):
                if reader not in dirty:
                    dirty.add(reader)
                    heappush(heap, self.place[reader])
        return changed

    def _of_stream(self, node: int) -> object:
        """What equal streams of one class have in common."""
        label, first, following = self.graph.labels[node], self.graph.args[node][0], self.graph.yields[node]
        return label, self.graph.types[node], self.colors[first], self.colors[following]

    def _of_node(self, node: int) -> object:
        """What equal nodes have in common."""
        label = self.graph.labels[node]
        colors = [self.colors[arg] for arg in self.graph.args[node]]
        if label[0] in COMMUTATIVE:
            colors.sort()
        return label, self.graph.types[node], tuple(colors)


def _order(graph: Graph, roots: Sequence[int]) -> tuple[list[int], set[int]]:
    """All nodes in reach, operands before readers except for streams, which come first; and those above streams."""
    order: list[int] = []
    seen: set[int] = set()
    pending = list(roots)
    streams: list[int] = []
    # Ends: the arguments of a stream are added once, when it is first seen.
    while pending:
        _visit(graph, pending.pop(), seen, order, streams)
        # Ends: each round takes a stream out.
        while streams:
            stream = streams.pop()
            pending += (graph.args[stream][0], graph.yields[stream])
    order.sort(key=lambda node: graph.labels[node][0] != "stream")
    recurrent = {node for node in order if graph.labels[node][0] == "stream"}
    for node in order:
        if any(arg in recurrent for arg in graph.args[node]):
            recurrent.add(node)
    return order, recurrent


def _visit(graph: Graph, root: int, seen: set[int], order: list[int], streams: list[int]) -> None:
    stack = [(root, False)]
    # Ends: the arguments of a node are added once.
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        if node in seen:
            continue
        seen.add(node)
        if graph.labels[node][0] == "stream":
            order.append(node)
            streams.append(node)
            continue
        stack.append((node, True))
        stack.extend((arg, False) for arg in graph.args[node] if arg not in seen)


def holds(graph: Graph, colors: dict[int, int], pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether a proposed partition proves that pairs of nodes are equal; trusts nothing about how it was found.

    Args:
      graph: the graph.
      colors: the proposed class of every node in reach of the pairs.
      pairs: nodes claimed to be equal.
    """
    claims: dict[int, object] = {}
    for node, color in colors.items():
        label, args = graph.labels[node], graph.args[node]
        below = args if label[0] != "stream" else (*args, graph.yields[node])
        if any(each not in colors for each in below):
            return False
        held = [colors[each] for each in below]
        if label[0] in COMMUTATIVE:
            held.sort()
        if claims.setdefault(color, (label, graph.types[node], tuple(held))) != (label, graph.types[node], tuple(held)):
            return False
    return all(colors[a] == colors[b] for a, b in pairs)
