"""Loops of the original whose last iteration the result runs after them, or whose iterations it runs two at a time.

``while^m(f)(x) = f(while^(m-1)(f)(x))`` for m of one or more. The original's loop is then evaluated in the second
form: its predicate ``i < bound`` becomes ``i < bound - step``, and its body is evaluated once more on what it leaves.
``while^m(f)(x) = while^(m/2)(f . f)(x)`` for an even m: the body is then evaluated twice in each iteration. That the
loop is counted, by constants, is read off the nodes. The loops to try are guessed from the two texts.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from hlorewrite.analysis.loops import trip_count
from hlorewrite.checks.value_graph.graph import Graph, shape_and_element
from hlorewrite.checks.value_graph.normalize import op_of
from hlorewrite.ir import View, ancestors, ir, op_key

_DIRECTION = re.compile(r"\b(LT|GT|LE|GE)\b")
_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}


def set_apart(original: View, result: View) -> frozenset[int]:
    """Keys of the original's outermost loops that seem to run one iteration less in the result."""
    return _matched(original, result, lambda trips: trips - 1)


def in_pairs(original: View, result: View) -> frozenset[int]:
    """Keys of the original's outermost loops that seem to run half as often in the result."""
    return _matched(original, result, lambda trips: trips if trips % 2 else trips // 2)


def _matched(original: View, result: View, fewer: Callable[[int], int]) -> frozenset[int]:
    """Keys of the original's outermost loops that seem to run less often in the result, matched in order.

    Args:
      original: the module before.
      result: the module after.
      fewer: how often a loop runs in the result, by how often it runs in the original.
    """
    left, keys = [trip_count(op) for op in _outermost(result)], set[int]()
    for op in _outermost(original):
        trips = trip_count(op)
        if trips is None:
            continue
        found = next((at for at, other in enumerate(left) if other in (trips, fewer(trips))), None)
        if found is None:
            continue
        if left[found] != trips:
            keys.add(op_key(op))
        del left[:found + 1]
    return frozenset(keys)


def is_even(graph: Graph, predicate: int) -> bool:
    """Whether a loop whose counter takes two steps in each iteration would run an even number of single steps.

    ``i < bound`` with i from ``start`` in single steps of s holds m = ceil((bound - start) / s) times. For an even m,
    it holds after each pair of steps but the last one.
    """
    found = counted(graph, predicate)
    return found is not None and found.step % 2 == 0 and (
        math.ceil((found.bound - found.start) / (found.step // 2)) % 2 == 0)


def _outermost(view: View) -> list[ir.Operation]:
    return [op for op in view.ops("stablehlo.while")
            if not any(outer.name == "stablehlo.while" for outer in ancestors(op))]


def step_of(graph: Graph, predicate: int) -> int | None:
    """The step of the counter that a predicate compares with a constant, for two iterations or more.

    ``i op bound`` with i from ``start`` in steps of ``step`` holds m = ceil((bound - start) / step) times. With two
    iterations or more ``bound - step`` is between start and bound, so the type of the counter holds it.
    """
    place = _place_of_counter(graph, predicate)
    if place is None:
        return None
    counter, bound = graph.args[predicate][place], _number(graph, graph.args[predicate][1 - place])
    direction = _direction(graph, predicate)
    direction = direction if place == 0 else _MIRRORED[direction]
    start, step = _number(graph, graph.args[counter][0]), _step(graph, counter)
    if bound is None or start is None or step is None or (direction in ("LT", "LE")) != (step > 0):
        return None
    end = bound + {"LE": 1, "GE": -1}.get(direction, 0)
    return step if math.ceil((end - start) / step) >= 2 else None


@dataclass(frozen=True)
class CountedByConstants:
    """A counter that grows to a bound in steps; step and bound have its type.

    Attributes:
      counter: the stream.
      start: its first number.
      step: what it grows by, one or more.
      bound: the loop runs as long as it is less.
    """

    counter: int
    start: int
    step: int
    bound: int


def counted(graph: Graph, predicate: int) -> CountedByConstants | None:
    """The counter of a predicate ``i < bound`` of constants; None for all else, and if a number wraps around."""
    if _place_of_counter(graph, predicate) != 0 or _direction(graph, predicate) != "LT":
        return None
    counter, end = graph.args[predicate]
    start, step, bound = _number(graph, graph.args[counter][0]), _step(graph, counter), _number(graph, end)
    known = shape_and_element(graph.types[counter])
    if start is None or step is None or bound is None or known is None or step < 0 or bound <= start:
        return None
    largest = 2 ** (int(known[1][2:]) if known[1].startswith("ui") else int(known[1][1:]) - 1) - 1
    if max(bound - start + step, bound + step) > largest:
        return None
    return CountedByConstants(counter, start, step, bound)


def once_less(graph: Graph, predicate: int, step: int) -> int:
    """The predicate with its bound lowered by one step; the predicate itself if it does not test a counter."""
    place = _place_of_counter(graph, predicate)
    if place is None:
        return predicate
    counter, bound = graph.args[predicate][place], graph.args[predicate][1 - place]
    lower = graph.splat((_number(graph, bound) or 0) - step, graph.types[bound])
    return graph.node(graph.labels[predicate], graph.types[predicate],
                      (counter, lower) if place == 0 else (lower, counter))


def _place_of_counter(graph: Graph, predicate: int) -> int | None:
    """The index of the operand that is the stream, in a comparison of a stream with a number."""
    if not _direction(graph, predicate):
        return None
    args = graph.args[predicate]
    return next((n for n, arg in enumerate(args) if graph.labels[arg][0] == "stream"
                 and _number(graph, args[1 - n]) is not None), None)


def _direction(graph: Graph, predicate: int) -> str:
    compared = op_of(graph, predicate, "stablehlo.compare")
    match = _DIRECTION.search(compared.get("comparison_direction", "")) if compared else None
    return match[1] if match else ""


def _step(graph: Graph, counter: int) -> int | None:
    """What a stream grows by in each iteration."""
    following = graph.yields.get(counter)
    if following is None:
        return None
    for name, sign in (("stablehlo.add", 1), ("stablehlo.subtract", -1)):
        if op_of(graph, following, name) is None:
            continue
        first, second = graph.args[following]
        if first != counter and sign > 0:
            first, second = second, first
        step = _number(graph, second)
        if first == counter and step:
            return sign * step
    return None


def _number(graph: Graph, node: int) -> int | None:
    """A splat of an integer."""
    label = graph.labels[node]
    text = str(label[1]) if label[0] == "splat" else ""
    return int(text) if text.lstrip("-").isdigit() else None
