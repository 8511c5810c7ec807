"""Which nodes are equal: the coarsest partition in which equal nodes have equal labels and equal operands.

Streams are equal when they start equal and go on equal. A partition that a round of refinement leaves alone proves that
by induction over the iterations: equal in all before, they are equal in the next.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    colors.update(dict.fromkeys(moving, fixed))
    count = 0
    while True:  # ends: each round makes more classes, of which there are at most as many as nodes
        table: dict[object, int] = {}
        new = dict(colors)
        for node in moving:
            new[node] = fixed + table.setdefault(_signature(graph, node, colors, new), len(table))
        if len(table) == count or any(new[a] != new[b] for a, b in pairs):
            return new
        count, colors = len(table), new


def _signature(graph: Graph, node: int, old: dict[int, int], new: dict[int, int]) -> object:
    """What equal nodes have in common; of streams, their class so far, so that classes only split."""
    label, args = graph.labels[node], graph.args[node]
    if label[0] == "stream":
        return label, graph.types[node], old[node], old[args[0]], old[graph.yields[node]]
    colors = [new[arg] for arg in args]
    if label[0] in COMMUTATIVE:
        colors.sort()
    return label, graph.types[node], tuple(colors)


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
