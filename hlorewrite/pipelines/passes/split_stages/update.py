"""Where each op after the loop runs: its mesh and its round.

Values of more than one element that meet in an op belong together: a gradient, its parameter, and the optimizer's
state for it. Such a group runs on the mesh that holds its parameter (``value_groups.py``). Single numbers of several
meshes, as in a global norm, meet on the last stage's mesh. A round (level) ends where a value changes mesh, so that
fragments of one mesh and level never wait for each other in a cycle: level(op) = max over operands of level(operand) +
(1 if it comes from another mesh).
"""

from dataclasses import dataclass, field

from hlorewrite.pipelines.passes.split_stages.graph import StepNode, Values, closure
from hlorewrite.pipelines.passes.split_stages.meshes import ProgramMeshes
from hlorewrite.pipelines.passes.split_stages.step import TrainStep
from hlorewrite.pipelines.passes.split_stages.value_groups import value_groups


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
