"""The check of a proposed partition: every claim it makes is looked at."""

from __future__ import annotations

import random

import pytest

from hlorewrite.checks.translation_validation.congruence import APART, check_partition, refine_partition
from hlorewrite.checks.value_graph.graph import Graph

T = "tensor<f32>"


def two_loops(first: str, second: str) -> tuple[Graph, int, int]:
    """Two streams that start at one value and go on by one op each with another value."""
    graph = Graph()
    start, other = graph.node(("source", 0, None, False), T), graph.node(("source", 1, None, False), T)
    streams = []
    for name in (first, second):
        stream = graph.stream(1, T, start)
        graph.yields[stream] = graph.node((name, (), (), 0), T, (stream, other))
        streams.append(stream)
    return graph, *streams


def test_streams_that_go_on_alike_are_equal() -> None:
    """Equal starts and equal steps: equal, and the check agrees."""
    graph, a, b = two_loops("stablehlo.add", "stablehlo.add")
    colors = refine_partition(graph, [a, b], [(a, b)])
    assert colors[a] == colors[b] and check_partition(graph, colors, [(a, b)])


def test_streams_that_go_on_otherwise_are_not() -> None:
    """Another step: not equal; a partition that says so all the same does not hold."""
    graph, a, b = two_loops("stablehlo.add", "stablehlo.subtract")
    colors = refine_partition(graph, [a, b], [(a, b)])
    assert colors[a] != colors[b]
    assert not check_partition(graph, colors, [(a, b)])
    colors[b] = colors[a]
    assert not check_partition(graph, colors, [(a, b)])
    colors[graph.yields[b]] = colors[graph.yields[a]]
    assert not check_partition(graph, colors, [(a, b)])


def test_every_node_below_has_a_class() -> None:
    """A partition that leaves something out proves nothing."""
    graph, a, b = two_loops("stablehlo.add", "stablehlo.add")
    colors = refine_partition(graph, [a, b], [(a, b)])
    for node, color in enumerate(colors):
        if color != APART:
            assert not check_partition(graph, [APART if n == node else c for n, c in enumerate(colors)], [(a, b)])


def test_types_and_operands_count() -> None:
    """Nodes of one class have one type and operands of the same classes in order."""
    graph = Graph()
    x, y = graph.node(("source", 0, None, False), T), graph.node(("source", 1, None, False), T)
    less = graph.node(("stablehlo.subtract", (), (), 0), T, (x, y))
    more = graph.node(("stablehlo.subtract", (), (), 0), T, (y, x))
    wide = graph.node(("stablehlo.subtract", (), (), 0), "tensor<f64>", (x, y))
    for other in (more, wide):
        classes = {x: 0, y: 1, less: 2, other: 2}
        assert not check_partition(graph, [classes.get(node, APART) for node in range(len(graph.labels))], [(less,
                                                                                                             other)])
    classes = {x: 0, y: 1, less: 2}
    assert check_partition(graph, [classes.get(node, APART) for node in range(len(graph.labels))], [(less, less)])


def by_rounds(graph: Graph, nodes: list[int], streams: list[int]) -> dict[int, int]:
    """The coarsest partition, by refining all nodes until nothing changes."""
    colors = dict.fromkeys(nodes, 0)
    while True:  # ends: each round but the last makes more classes
        table: dict[object, int] = {}
        new = {}
        for node in nodes:
            below = (*graph.args[node], *((graph.yields[node],) if node in streams else ()))
            seen = [colors[each] for each in below]
            held = tuple(sorted(seen) if graph.labels[node][0] == "stablehlo.add" else seen)
            new[node] = table.setdefault((colors[node], graph.labels[node], graph.types[node], held), len(table))
        if len(table) == len(set(colors.values())):
            return new
        colors = new


@pytest.mark.parametrize("seed", range(200))
def test_classes_are_those_of_a_plain_refinement(seed: int) -> None:
    """Random graphs of streams and ops, several of them equal."""
    random_, graph = random.Random(seed), Graph()
    nodes = [graph.node(("splat", str(number)), T) for number in range(2)]
    streams: list[int] = []
    for _ in range(random_.randint(4, 40)):
        if random_.random() < 0.4:
            streams.append(graph.stream(0, T, random_.choice(nodes)))
            nodes.append(streams[-1])
        else:
            name = random_.choice(["stablehlo.add", "stablehlo.subtract"])
            operands = random_.choice(nodes), random_.choice(nodes)
            nodes.append(graph.node((name,), T, tuple(sorted(operands)) if name == "stablehlo.add" else operands))
    graph.yields.update({stream: random_.choice(nodes) for stream in streams})
    nodes = sorted(set(nodes))
    found, wanted = refine_partition(graph, nodes, []), by_rounds(graph, nodes, streams)
    assert all((found[a] == found[b]) == (wanted[a] == wanted[b]) for a in nodes for b in nodes)
    assert check_partition(graph, found, [])
