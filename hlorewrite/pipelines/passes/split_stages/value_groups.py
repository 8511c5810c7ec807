"""The parameter that each value of an update belongs to: gradients, the optimizer's state, what is made of them.

Each tensor belongs to its nearest parameter: the one reached over the fewest ops that mix places (flat vectors of all
gradients, products, branches), then over the fewest ops of any kind. An argument and the result that takes its place in
the next step are one. So state stays with its parameter, whatever else reads both.
"""

import heapq
import re

from hlorewrite.ops.table import ELEMENTWISE, MOVES_OF_ONE, SAME
from hlorewrite.pipelines.passes.split_stages.graph import StepNode
from hlorewrite.pipelines.passes.split_stages.step import TrainStep

_BY_PLACE = ELEMENTWISE | MOVES_OF_ONE | SAME | {"add", "convert"}
"""Ops that mix no places; the last two are nodes without an op."""
_HOME, _AFTER, _NAME = 0, 1, 2
_KEY = re.compile(r"\[[^\[\]]*\]|\.\w+")
_ROWS = re.compile(r"\[\d+,\d+\)$")
Distance = tuple[int, int, int]
"""The number of ops on the way that mix places; what is at its end (a parameter, a result of the loop, or a parameter
of the same name); the number of all ops on the way."""


def value_groups(step: TrainStep, after: dict[int, int], home: dict[int, int]) -> dict[int, int]:
    """The mesh that each tensor of the update belongs to.

    Constants, and numbers spread over a tensor, belong to no mesh: several may share them.

    Args:
      step: the step.
      after: mesh of each result of the loop, by number.
      home: mesh of each argument that the loop reads, by number.

    Returns:
      The mesh by number, of values that one is known for.
    """
    values = step.values
    sides = _meetings(step, _rooted(step, after))
    of_value: dict[int, list[int]] = {}
    for side, (_, members) in enumerate(sides):
        for number in members:
            of_value.setdefault(number, []).append(side)
    heap: list[tuple[Distance, int, int]] = [((0, _HOME, 0), number, mesh) for number, mesh in home.items()]
    heap += [((0, _AFTER, 0), number, mesh) for number, mesh in after.items()]
    heap += [((0, _NAME, 0), number, home[like]) for number, like in _named_alike(step, home).items()]
    heapq.heapify(heap)
    found: dict[int, int] = {}
    passed: set[int] = set()
    # Ends: a value is taken once, and an op passed once.
    while heap:
        (mixing, end, length), number, mesh = heapq.heappop(heap)
        if number in found:
            continue
        found[number] = mesh
        for side in of_value.get(number, ()):
            if side not in passed:
                passed.add(side)
                mixes, members = sides[side]
                for each in members:
                    if each not in found:
                        heapq.heappush(heap, ((mixing + mixes, end, length + 1), each, mesh))
    return {values.find(number): mesh for number, mesh in found.items()}


def _meetings(step: TrainStep, rooted: set[int]) -> list[tuple[bool, list[int]]]:
    """(whether it mixes places, the tensors that meet) of each op after the loop, and of each carried argument."""
    values = step.values
    meetings: list[tuple[bool, list[int]]] = []
    for argument, result in step.returned.items():
        pair = [values.find(step.arguments[argument]), values.find(step.results[result])]
        if values.elements(pair[0]) > 1:
            meetings.append((False, pair))
    for node in step.after:
        for together in _together(node):
            large = [each for each in map(values.find, together) if each in rooted]
            if len(large) > 1:
                meetings.append((node.name not in _BY_PLACE, large))
    return meetings


def _together(node: StepNode) -> list[tuple[int, ...]]:
    """The values that meet in a node; the operands of a barrier are unrelated to each other."""
    if node.name in SAME:
        return list(zip(node.operands, node.results, strict=True))
    return [(*node.reads, *node.results)]


def _rooted(step: TrainStep, after: dict[int, int]) -> set[int]:
    """Tensors that are made of arguments or of results of the loop."""
    values = step.values
    rooted = {each for each in (*step.arguments, *after) if values.elements(each) > 1}
    for node in (*step.before, *step.after):
        if any(values.find(each) in rooted for each in node.reads):
            rooted.update(each for each in node.results if values.elements(each) > 1)
    return rooted


def _named_alike(step: TrainStep, home: dict[int, int]) -> dict[int, int]:
    """The parameter whose name has the same ending as an argument's, if all such parameters are on one mesh."""
    known: dict[tuple[str, ...], dict[int, int]] = {}  # ends of names -> mesh -> a parameter
    for number in step.arguments:
        if number in home and step.values.elements(number) > 1:
            keys = name_keys(step.argument_name(number))
            for start in range(len(keys)):
                known.setdefault(keys[start:], {}).setdefault(home[number], number)
    alike: dict[int, int] = {}
    for number in step.arguments:
        if number in home or step.values.elements(number) <= 1:
            continue
        keys = name_keys(step.argument_name(number))
        meshes = next((known[keys[start:]] for start in range(len(keys)) if keys[start:] in known), {})
        if len(meshes) == 1:
            alike[number] = next(iter(meshes.values()))
    return alike


def name_keys(name: str) -> tuple[str, ...]:
    """The keys in the name of a leaf of a pytree, its rows last if it is a part of a stack.

    Example:
      >>> name_keys("state[1][0].mu['w'][2,4)")
      ('[1]', '[0]', '.mu', "['w']", '[2,4)')
    """
    rows = _ROWS.search(name)
    return (*_KEY.findall(name[:rows.start()] if rows else name), *([rows[0]] if rows else ()))
