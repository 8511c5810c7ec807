"""Where each op after the loop runs: its mesh and its round.

Values of more than one element that meet in an op belong together: a gradient, its parameter, and the optimizer's
state for it. Such a group runs on the mesh that holds its parameter. Single numbers of several
meshes, as in a global norm, meet on the last stage's mesh. A round (level) ends where a value changes mesh, so that
fragments of one mesh and level never wait for each other in a cycle: level(op) = max over operands of level(operand) +
(1 if it comes from another mesh).
"""

import heapq
import re
from dataclasses import dataclass, field

from hlorewrite.ops.table import ELEMENTWISE, MOVES_OF_ONE, SAME
from hlorewrite.pipelines.passes.split_stages.graph import StepNode, Values, closure
from hlorewrite.pipelines.passes.split_stages.meshes import ProgramMeshes
from hlorewrite.pipelines.passes.split_stages.step import TrainStep


@dataclass
class Update:
    """Where the ops after the loop run.

    Attributes:
      step: the step.
      place: (level, mesh) of each node that depends on a result of the loop, by ``id``; others float.
      group: the mesh of each value's group, by number, where one is known.
      home: mesh of each argument that the loop reads.
    """

    step: TrainStep
    place: dict[int, tuple[int, int]] = field(default_factory=dict)
    group: dict[int, int] = field(default_factory=dict)
    home: dict[int, int] = field(default_factory=dict)

    def float_mesh(self, number: int) -> int:
        """The mesh for a result that depends on no result of the loop."""
        known = self.group.get(number)
        if known is not None:
            return known
        values = self.step.values
        for argument in closure(values, [number], lambda node: True)[1]:
            mesh = self.home.get(argument, self.group.get(argument))
            if mesh is not None:
                return mesh
        return 0


def place_update(step: TrainStep, topology: ProgramMeshes, after: dict[int, int], home: dict[int, int]) -> Update:
    """Places the ops after the loop.

    Args:
      step: the step.
      topology: the meshes.
      after: mesh of each result of the loop, by number.
      home: mesh of each argument the loop reads, by number.

    Returns:
      The places.
    """
    update = Update(step, group=value_groups(step, after, home), home=home)
    values, hub = step.values, topology.mesh_of[-1]
    meshes = _known_meshes(update) | after
    levels = dict.fromkeys(meshes, 0)
    results = set(map(values.find, step.results))
    through: dict[int, set[int]] = {}  # what a floating value depends on among those that have a place
    for node in step.after:
        reads = [each for each in map(values.find, node.reads) if each in meshes]
        reads += [each for number in map(values.find, node.reads) for each in sorted(through.get(number, ()))]
        if not reads:
            continue
        if _spreads(values, node, reads) and results.isdisjoint(node.results):
            through.update((result, set(reads)) for result in node.results)
            continue
        mesh = _mesh(update, node, [meshes[each] for each in reads], hub)
        level = max(levels[each] + (meshes[each] != mesh) for each in reads)
        update.place[id(node)] = (level, mesh)
        for result in node.results:
            levels[result], meshes[result] = level, mesh
    return update


def _spreads(values: Values, node: StepNode, reads: list[int]) -> bool:
    """Whether a node only expands scalars or smaller tensors: it is copied to where its results are needed."""
    largest = 1 if node.name != "stablehlo.broadcast_in_dim" else values.elements(node.results[0]) - 1
    return values.is_cheap(node) and all(values.elements(each) <= largest for each in reads) and \
        all(values.elements(each) > 1 for each in node.results)


def _mesh(update: Update, node: StepNode, given: list[int], hub: int) -> int:
    values = update.step.values
    large = [each for each in map(values.find, (*node.results, *node.reads))
             if values.elements(each) > 1 and each in update.group]
    if large:
        return update.group[max(large, key=values.elements)]
    return given[0] if len(set(given)) == 1 else hub


def _known_meshes(update: Update) -> dict[int, int]:
    """The meshes of tensors from before the loop that belong to a parameter: what reads them runs there."""
    step = update.step
    made = [number for node in step.before for number in node.results]
    return {number: update.group[number] for number in map(step.values.find, (*step.arguments, *made))
            if step.values.elements(number) > 1 and number in update.group}


# ---- the parameter that each value of an update belongs to: gradients, the optimizer's state, what is made of them

# Each tensor belongs to its nearest parameter: the one reached over the fewest ops that mix places (flat vectors of all
# gradients, products, branches), then over the fewest ops of any kind. An argument and the result that takes its place
# in the next step are one. So state stays with its parameter, whatever else reads both.


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
