"""Chooses the stages of a step without marks: cuts by the cost model, the best of them by the simulator."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hlorewrite.cost import Topology
from hlorewrite.cost import topology as find_topology
from hlorewrite.cost.kernels.clock import KernelClock
from hlorewrite.errors import HlorewriteError, InputError, PlanError
from hlorewrite.ir import Editor, Module, View, ir, nested_ops, op_key
from hlorewrite.pipelines.passes.split_stages.auto import cut_graph
from hlorewrite.pipelines.passes.split_stages.auto.cut_costs import (
    CutCosts,
    StageLimits,
    backward_halves,
    best_cuts,
    cut_costs,
)
from hlorewrite.pipelines.passes.split_stages.graph import StepNode
from hlorewrite.pipelines.passes.split_stages.meshes import parse_shapes
from hlorewrite.pipelines.passes.split_stages.stage_assignment import is_backward
from hlorewrite.pipelines.passes.split_stages.step import mark_of, stage_mark
from hlorewrite.pipelines.schedules import make_schedule, peak_live
from hlorewrite.pipelines.simulate import Simulation
from hlorewrite.pipelines.simulate.program_times import simulate_module
from hlorewrite.util.sizes import format_bytes

DEFAULT_TOPOLOGY = "h200"
"""The cluster that stages are chosen for if none is named."""
MOST_SIMULATED = 20
"""Cuts that are simulated."""
_LARGEST_LOOP = 1.5  # times the mean stage
_LOOP_TO_CUT = 0.25  # times the mean stage


@dataclass(frozen=True)
class StageSearch:
    """The setting in which stages are chosen.

    Attributes:
      meshes: shapes of the meshes, as the pass ``split-stages`` takes them.
      schedule: name of the schedule.
      mesh_of: the mesh of each stage, for a schedule without a name.
      stages: n.
      microbatches: m; 0 for as many as the loop runs.
      topology: the cluster.
    """

    meshes: str
    schedule: str
    mesh_of: tuple[int, ...]
    stages: int
    microbatches: int
    topology: str


@dataclass(frozen=True)
class ChosenStages:
    """The stages of a step.

    Attributes:
      cuts: after how many ops of the forward each stage but the first begins, an iteration of a loop being one.
      boundaries: for each of them the cut, the user's line before it, and the bytes that are sent over it each way.
      simulated: how many cuts were simulated.
    """

    cuts: tuple[int, ...]
    boundaries: tuple[tuple[int, str, float], ...]
    simulated: int


def mark_cuts(module: Module, cuts: Sequence[int], microbatches: int = 0) -> None:
    """Writes marks into a step without any.

    Args:
      module: the step, without calls.
      cuts: after how many ops of the forward each stage but the first begins, an iteration of a loop being one.
      microbatches: how often the loop runs; 0 for any number.

    Raises:
      InputError: the step has marks, or fewer ops.
    """
    graph = _cut_graph(module, microbatches)
    count = cut_graph.ops_counted(graph)
    if list(cuts) != sorted(set(cuts)) or not 0 < cuts[0] <= cuts[-1] < count:
        raise InputError(f"cuts {', '.join(map(str, cuts))} do not increase between 1 and {count - 1}, "
                         "the ops of the forward pass", location=module.name,
                         hint="pass the cuts from the remarks of stages=auto")
    numbered = cut_graph.cut_inside(module, graph, cut_graph.inside_loops(graph, cuts), microbatches)
    graph, places = numbered.graph, [numbered.count(cut) for cut in cuts]
    write_marks(graph, Editor(graph.step.view), places, backward_halves(graph, places))


def choose_stages(module: Module, wanted: StageSearch, split: Callable[[tuple[int, ...]], Module]) -> ChosenStages:
    """Chooses where stages begin.

    Args:
      module: the step, without calls.
      wanted: what for.
      split: makes the program of a cut.

    Returns:
      The cut with the shortest simulated step, among the most promising cuts and their neighbours.

    Raises:
      InputError: the step has marks, too few places to cut at, or no cut fits the memory or can be split.
      UsageError: the cluster is not known.
    """
    cluster = find_topology(wanted.topology or DEFAULT_TOPOLOGY)
    numbered = _layers_apart(module.clone(), wanted, cluster)
    graph = numbered.graph
    clock = KernelClock(graph.step.view, cluster)
    costs = cut_costs(graph, clock)
    numbers = [numbered.number(cut) for cut in costs.cuts]
    first = _promising(graph, costs, clock, wanted, cluster)
    sent: dict[tuple[str, str], float] = {}

    @functools.cache
    def seconds(places: tuple[int, ...]) -> float | HlorewriteError:
        try:
            program = split(tuple(numbers[place] for place in places))
            simulation = simulate_module(program, wanted.schedule, wanted.topology or DEFAULT_TOPOLOGY, known=sent)
        except HlorewriteError as error:
            return error
        return _fitting(simulation, cluster, module.name)

    best = _descend(first, len(costs.cuts), seconds)
    taken = seconds(best)
    if isinstance(taken, HlorewriteError):
        raise taken
    boundaries = tuple((numbers[place], _source(graph, costs.cuts[place]), float(costs.sent[place]) / 2)
                       for place in best)
    return ChosenStages(tuple(cut for cut, _, _ in boundaries), boundaries, seconds.cache_info().currsize)


def _promising(graph: cut_graph.CutGraph, costs: CutCosts, clock: KernelClock, wanted: StageSearch,
               cluster: Topology) -> list[tuple[int, ...]]:
    """The cuts of the dynamic programming; refuses a step without."""
    if len(costs.cuts) < wanted.stages - 1:
        raise InputError(f"the forward pass can be cut in {len(costs.cuts)} places, but {wanted.stages} stages need "
                         f"{wanted.stages - 1}", location=graph.step.view.source(graph.step.loop),
                         hint="use fewer meshes")
    _refuse_one_loop(graph, clock, wanted.stages)
    first = best_cuts(costs, stage_limits(graph, wanted, cluster))
    if not first:
        raise PlanError(f"no cut into {wanted.stages} stages fits the {format_bytes(cluster.memory_bytes, 1)} of a "
                        f"device of {cluster.name}", location=graph.step.view.module.name,
                        hint="use more or larger meshes, or smaller micro-batches")
    return first


def _layers_apart(module: Module, wanted: StageSearch, cluster: Topology) -> cut_graph.NumberedGraph:
    """The step in which loops that take a good part of a stage have become one loop per iteration, so that cuts inside
    can be compared.
    """
    graph = _cut_graph(module, wanted.microbatches)
    clock = KernelClock(graph.step.view, cluster)
    whole = sum(clock.seconds(node.op) for node in graph.forward if node.op is not None)
    apart = {op_key(node.op): range(1, cut_graph.iterations_of(node.op)) for node in graph.forward
             if node.op is not None and cut_graph.iterations_of(node.op) > 1
             and clock.seconds(node.op) * wanted.stages > _LOOP_TO_CUT * whole}
    return cut_graph.cut_inside(module, graph, apart, wanted.microbatches)


def _refuse_one_loop(graph: cut_graph.CutGraph, clock: KernelClock, stages: int) -> None:
    """Refuses a step whose work is one loop that cannot be cut: it is a single op, so it cannot fill several stages."""
    loops = [(clock.seconds(node.op), node.op) for node in graph.forward if node.op is not None
             and node.name == "stablehlo.while"]
    whole = sum(clock.seconds(node.op) for node in graph.forward if node.op is not None)
    for seconds, op in loops:
        if seconds * stages > _LARGEST_LOOP * whole:
            raise InputError(f"one loop takes {seconds / whole:.0%} of the forward pass, and it cannot be cut "
                             f"between its iterations: it has one, more than {cut_graph.MOST_ITERATIONS}, or an "
                             "unknown number",
                             location=graph.step.view.source(op),
                             hint=f"cut it with hlorewrite.stage_layers(x, {stages}) in its body, or write its layers "
                                  "one after the other")


def stage_limits(graph: cut_graph.CutGraph, wanted: StageSearch, cluster: Topology) -> StageLimits:
    """The devices of the stages, for the dynamic programming."""
    sizes = [math.prod(shape) for shape in parse_shapes(wanted.meshes)]
    if wanted.mesh_of:
        placed, alive = wanted.mesh_of, [graph.step.iterations] * len(sizes)
    else:
        schedule = make_schedule(wanted.schedule, len(sizes), graph.step.iterations)
        placed, alive = schedule.mesh_of, peak_live(schedule)
    values, step = graph.step.values, graph.step
    whole = sum(values.bytes(each) for each in step.arguments)
    read = {values.find(each) for node in step.body for each in node.reads}
    in_loop = sum(values.bytes(each) for each in step.arguments if each in read)
    slow = cluster.gpus_per_host < sum(sizes)
    return StageLimits(tuple(sizes[mesh] for mesh in placed), tuple(alive[mesh] for mesh in placed),
                       cluster.memory_bytes, 1.0 + whole / max(in_loop, 1),
                       cluster.nic_sustained_bytes_per_s if slow else cluster.intra_sustained_bytes_per_s)


def _cut_graph(module: Module, microbatches: int) -> cut_graph.CutGraph:
    view = View(module)
    marked = next((op for op in view.ops("stablehlo.optimization_barrier") if mark_of(op)), None)
    if marked is not None:
        raise InputError("the step has stage marks", location=view.source(marked),
                         hint="take the marks out, or split at them: leave stages=auto and cuts out")
    return cut_graph.read_cut_graph(view, microbatches)


def _fitting(simulation: Simulation, cluster: Topology, where: str) -> float | HlorewriteError:
    """Seconds of a step; what does not fit."""
    peak = max(simulation.peak_bytes)
    if peak > cluster.memory_bytes:
        return PlanError(f"the best cut keeps {format_bytes(peak, 1)} on a device of {cluster.name}, which has "
                         f"{format_bytes(cluster.memory_bytes, 1)}", location=where,
                         hint="use more or larger meshes, or smaller micro-batches")
    return simulation.iteration_time_s


def _descend(first: Sequence[tuple[int, ...]], count: int,
             seconds: Callable[[tuple[int, ...]], float | HlorewriteError]) -> tuple[int, ...]:
    """The best cut reached from some cuts by moving one boundary by one place at a time."""
    tried: dict[tuple[int, ...], float] = {}

    def value(places: tuple[int, ...]) -> float:
        if places not in tried:
            taken = seconds(places)
            tried[places] = math.inf if isinstance(taken, HlorewriteError) else taken
        return tried[places]

    best = min(first[:MOST_SIMULATED // 2], key=value)
    better = True
    # Ends: each round finds a faster cut, or is the last one; at most MOST_SIMULATED cuts are tried.
    while better:
        better = False
        for stage in range(len(best)):
            for step in (-1, 1, -2, 2):
                moved = (*best[:stage], best[stage] + step, *best[stage + 1:])
                legal = list(moved) == sorted(set(moved)) and moved[0] >= 0 and moved[-1] < count
                if legal and (moved in tried or len(tried) < MOST_SIMULATED) and value(moved) < value(best):
                    best, better = moved, True
    return best


def _source(graph: cut_graph.CutGraph, cut: int) -> str:
    node = graph.forward[cut - 1]
    return graph.step.view.source(node.op) if node.op is not None else graph.step.view.module.name


# ---- writes the marks of a cut: one on each value that crosses from stage to stage, and one on each cotangent back


def write_marks(graph: cut_graph.CutGraph, editor: Editor, cuts: Sequence[int], halves: Sequence[int]) -> None:
    """Writes the marks of a cut into the step's loop.

    Args:
      graph: the step.
      editor: the editor of its module.
      cuts: how many nodes of the forward are before each stage but the first, rising.
      halves: how many nodes of the backward belong to that stage and later ones.
    """
    _MarkWriter(graph, editor).write(cuts, halves)


class _MarkWriter:
    """Gives each node its stage, and each value that it reads from another stage a mark.

    A forward value is marked once for each stage that reads it. A backward op reads the copy from its stage's forward
    if there is one, else that of the nearest stage before.
    """

    def __init__(self, graph: cut_graph.CutGraph, editor: Editor) -> None:
        self.graph, self.editor, self.values = graph, editor, graph.step.values
        self.stage: dict[int, int] = {}  # value -> stage of its maker
        self.marked: dict[tuple[int, int], ir.Value] = {}  # (value, stage) -> the mark's result
        self.backward: set[int] = set()  # values of the backward

    def write(self, cuts: Sequence[int], halves: Sequence[int]) -> None:
        """Writes all marks."""
        for place, node in enumerate(self.graph.forward):
            stage = sum(cut <= place for cut in cuts)
            for each in self.graph.reads(node):
                if self.stage[each] < stage:
                    self.use(node, each, stage, stage)
            self.stage.update(dict.fromkeys(node.results, stage))
        for place, node in enumerate(self.graph.backward):
            self.place_backward(node, sum(half > place for half in halves))

    def place_backward(self, node: StepNode, stage: int) -> None:
        """Marks the operands of a backward node. If none of them is a cotangent, the node stays on the stage of its
        operands.
        """
        reads = self.graph.reads(node)
        cotangents = [each for each in reads if each in self.backward]
        stage = min([stage, *(self.stage[each] for each in cotangents)])
        kept = [each for each in reads if each not in self.backward]
        if not cotangents and kept:
            stage = max(self.version(each, stage) for each in kept)
        for each in kept:
            version = self.version(each, stage)
            if version > self.stage[each]:
                self.use(node, each, version, version)
        for each in cotangents:
            if self.stage[each] > stage:
                self.use(node, each, stage, stage + 1)
        self.stage.update(dict.fromkeys(node.results, stage))
        if cotangents or is_backward(node):
            self.backward.update(node.results)

    def version(self, value: int, stage: int) -> int:
        """The nearest stage, at or before the given one, that has a forward value."""
        return max((at for at in range(stage + 1) if (value, at) in self.marked), default=self.stage[value])

    def use(self, node: StepNode, value: int, stage: int, index: int) -> None:
        """Makes a node read a value as it is on a stage."""
        if (value, stage) not in self.marked:
            self.mark(value, stage, index)
        old, new = self.made(value), self.marked[value, stage]
        assert node.op is not None
        for op in nested_ops(node.op):
            for position, operand in enumerate(op.operands):
                if operand == old:
                    self.editor.set_operand(op, position, new)

    def made(self, value: int) -> ir.Value:
        """A value as its op makes it."""
        node = self.values.producer[value]
        assert node is not None and node.op is not None
        return node.op.results[node.results.index(value)]

    def mark(self, value: int, stage: int, index: int) -> None:
        """Marks a value for a stage, right after it is made."""
        old, node = self.made(value), self.values.producer[value]
        assert node is not None and node.op is not None
        with self.editor.context:
            point = ir.InsertionPoint.after(node.op)
        self.marked[value, stage] = stage_mark(self.editor, old, (index, index > stage), old.location, point)
