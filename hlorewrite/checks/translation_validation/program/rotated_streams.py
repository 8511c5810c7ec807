"""Streams of equal ops become ops of streams, so the values that a rotated loop carries are computed from those that
its original carries.

A loop whose body is g after f becomes g, a loop of f after g, and f. It carries c_i = g(x_i) and x_i. With a stream
written as (first, next), for every op g,

    (g(a), g(b)) = g((a, b)),

by induction over the iterations; and the final value of an op of streams is the op of their final values: ``exit(g(s))
= g(exit(s))``. A counter that starts at another number than zero is one that starts at zero, plus that number; its
predicate is shifted with it where no number of the loop wraps around.
"""

from collections.abc import Iterable

from hlorewrite.checks.translation_validation.program.last_iteration import CountedByConstants, counted
from hlorewrite.checks.value_graph.graph import Graph
from hlorewrite.checks.value_graph.normalize import op_label

_OF_OPERANDS = ("all_gather", "reduced")
"""Nodes other than ops that are computed, in each iteration, from the operands of that iteration alone."""


def take_apart(graph: Graph, predicates: Iterable[int]) -> None:
    """Rewrites the streams of a graph, at most as many as it has nodes.

    Args:
      graph: the graph; every stream in reach has its yield.
      predicates: the predicates of loops.
    """
    apart: dict[int, int] = {}  # what was a stream -> the depth of its loop
    for predicate in dict.fromkeys(predicates):
        found = counted(graph, predicate)
        if found is not None and found.start:
            apart[found.counter] = _from_zero(graph, predicate, found)
    made: dict[tuple[object, int, int], int] = {}
    pending, most = list(graph.yields), 2 * len(graph.labels)
    # Ends: a stream that is added starts at an operand of what another one starts at; and there are at most ``most``.
    for stream in pending:
        if stream not in apart and len(pending) < most and _is_op(graph, stream):
            apart[stream] = _depth(graph, stream)
            pending += _taken(graph, stream, made)
    leaving = [node for node, label in enumerate(graph.labels) if label[0] == "exit"]
    # Ends: what is added stands for a stream that an op was made of, and each becomes an op once.
    for node in leaving:
        if graph.labels[node][0] == "exit" and graph.args[node][0] in apart:
            leaving += _leave(graph, node, apart)


def _from_zero(graph: Graph, predicate: int, found: CountedByConstants) -> int:
    """Lets a counter start at zero, and shifts its bound; returns the depth of its loop."""
    counter, type_, depth = found.counter, graph.types[found.counter], _depth(graph, found.counter)
    zero = graph.stream(depth, type_, graph.splat(0, type_))
    graph.yields[zero] = graph.node(op_label("stablehlo.add"), type_, (zero, graph.splat(found.step, type_)))
    graph.replace(counter, op_label("stablehlo.add"), (zero, graph.splat(found.start, type_)))
    graph.replace(predicate, graph.labels[predicate], (zero, graph.splat(found.bound - found.start, type_)))
    return depth


def _depth(graph: Graph, stream: int) -> int:
    return int(str(graph.labels[stream][1]))


def _is_op(graph: Graph, stream: int) -> bool:
    """Whether a stream starts with an op and goes on with the same op."""
    first, following = graph.args[stream][0], graph.yields[stream]
    label = graph.labels[first]
    of_operands = label[0] in _OF_OPERANDS or str(label[0]).startswith("stablehlo.")
    below = graph.args[first], graph.args[following]
    return (of_operands and label == graph.labels[following] and len(below[0]) == len(below[1]) > 0
            and all(graph.types[a] == graph.types[b] for a, b in zip(*below, strict=True)))


def _taken(graph: Graph, stream: int, made: dict[tuple[object, int, int], int]) -> list[int]:
    """Makes a stream the op of streams; returns the new ones. An operand that stays is none."""
    first, following = graph.args[stream][0], graph.yields[stream]
    depth, operands, fresh = _depth(graph, stream), list[int](), list[int]()
    for start, after in zip(graph.args[first], graph.args[following], strict=True):
        key = (depth, start, after)
        if start == after:
            operands.append(start)
            continue
        if key not in made:
            made[key] = graph.stream(depth, graph.types[start], start)
            graph.yields[made[key]] = after
            fresh.append(made[key])
        operands.append(made[key])
    graph.replace(stream, graph.labels[first], tuple(operands))
    return fresh


def _leave(graph: Graph, node: int, apart: dict[int, int]) -> list[int]:
    """What a loop leaves of an op of streams: the op of what it leaves of them; returns the nodes of that."""
    (stream, predicate), label, depth = graph.args[node], graph.labels[node], apart[graph.args[node][0]]
    left: dict[int, int] = {}
    for each in graph.args[stream]:
        of_loop = apart.get(each) == depth or graph.labels[each] == ("stream", depth)  # all else was there before
        left[each] = graph.node(label, graph.types[each], (each, predicate)) if of_loop else each
    graph.replace(node, graph.labels[stream], tuple(left[each] for each in graph.args[stream]))
    return list(left.values())
