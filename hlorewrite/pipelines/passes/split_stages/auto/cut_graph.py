"""A step without marks in a form that can be cut: the ops of its forward and of its backward pass, each in a fixed
order.

Forward ops are in program order, except that cheap ops that depend on the micro-batch alone, such as the embedding of a
decoder's tokens, come right before their first reader. A cut is a number of forward ops. JAX writes the backward in the
reverse order of the forward, so for each cut a single place in the backward separates the two sides: the one at which
least is sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hlorewrite.analysis.loops import trip_count
from hlorewrite.errors import InputError
from hlorewrite.ir import Editor, Loop, Module, View, ancestors, ir, op_key, op_name, passmanager
from hlorewrite.pipelines.passes.split_stages.graph import StepNode, closure, ops_of
from hlorewrite.pipelines.passes.split_stages.stacks.cut_loops import READ_ROWS, WRITTEN_ROWS, cut_loop, iter_arg_kinds
from hlorewrite.pipelines.passes.split_stages.stacks.direct_rows import make_rows_direct
from hlorewrite.pipelines.passes.split_stages.stage_assignment import is_backward, varying_nodes
from hlorewrite.pipelines.passes.split_stages.step import TrainStep, step_of

_HEAVY = frozenset(f"stablehlo.{name}" for name in ("dot_general", "convolution", "while", "custom_call", "sort"))


@dataclass(frozen=True)
class CutGraph:
    """The parts of a step between which cuts are possible.

    Attributes:
      step: the step; it has no marks.
      forward: the nodes of the forward that depend on the micro-batch, in the order in which they are cut.
      backward: the nodes of the backward that depend on the micro-batch, in the order of the program.
      around: nodes that go with what they read: accumulations, sums of losses.
      everywhere: values that every stage has or makes again: arguments, slices of the batch, masks, casts of
        parameters.
    """

    step: TrainStep
    forward: tuple[StepNode, ...]
    backward: tuple[StepNode, ...]
    around: tuple[StepNode, ...]
    everywhere: frozenset[int]

    def reads(self, node: StepNode) -> list[int]:
        """The values that a node reads, without those that every stage has; each once."""
        found = (self.step.values.find(each) for each in node.reads)
        return [each for each in dict.fromkeys(found) if each not in self.everywhere]


def read_cut_graph(view: View, microbatches: int) -> CutGraph:
    """The parts of a step between which cuts are possible.

    Args:
      view: the view of a module without calls and without marks.
      microbatches: how often its loop runs; 0 for any number.

    Returns:
      The graph.

    Raises:
      InputError: there is no loop over micro-batches, or forward and backward cannot be distinguished.
    """
    step = step_of(view, view.functions["main"], _largest_loop(view, microbatches), 1)
    varying = varying_nodes(step)
    everywhere = _everywhere(step, varying)
    nodes = [node for node in step.body if any(each not in everywhere for each in node.results)]
    first = next((place for place, node in enumerate(nodes) if is_backward(node)), len(nodes))
    if first == len(nodes) and not any(node.op is not None and op_name(node.op.location) for node in nodes):
        raise InputError("ops have no names: the backward pass cannot be distinguished from the forward pass",
                         location=view.module.name,
                         hint="lower the step with locations: as_text(debug_info=True), or mark stages yourself")
    forward, rest = nodes[:first], nodes[first:]
    backward, around = _backward(step, rest)
    return CutGraph(step, tuple(_delayed(step, forward, everywhere)), tuple(backward), tuple(around),
                    frozenset(everywhere))


def whole_step(view: View, microbatches: int) -> TrainStep:
    """A step of one stage, without marks.

    Args:
      view: the view of a module without calls.
      microbatches: how often its loop runs; 0 for any number.

    Raises:
      InputError: there is no such loop.
    """
    return step_of(view, view.functions["main"], _largest_loop(view, microbatches), 1)


def _largest_loop(view: View, microbatches: int) -> ir.Operation:
    """The loop of main with the most ops, of the right number of iterations where it is given."""
    main = view.functions["main"]
    loops = [op for op in view.ops("stablehlo.while") if next(iter(ancestors(op)), None) == main]
    fit = [op for op in loops if trip_count(op) is not None and microbatches in (0, trip_count(op))]
    if not fit:
        raise InputError("the step has no loop over micro-batches" + (f" that runs {microbatches} times"
                                                                      if microbatches and loops else ""),
                         location=view.module.name,
                         hint="use hlorewrite.mean_over_microbatches, or a lax.scan over the micro-batches")
    return max(fit, key=lambda op: len(list(op.regions[1].blocks[0].operations)))


def _everywhere(step: TrainStep, varying: set[int]) -> set[int]:
    values = step.values
    found = {values.find(number) for number, node in enumerate(values.producer) if node is None}
    found |= {each for node in step.before for each in node.results}
    for node in step.body:
        if id(node) not in varying or (values.is_cheap(node) and all(values.find(each) in found
                                                                     for each in node.reads)):
            found.update(node.results)
    return found


def _backward(step: TrainStep, rest: list[StepNode]) -> tuple[list[StepNode], list[StepNode]]:
    """Ops that lead to an op of the backward, and those that only follow from such ops.

    The latter include ops that join or add gradients for accumulation: each stage accumulates its part.
    """
    values = step.values
    leads: set[int] = set()
    for node in reversed(rest):
        if is_backward(node) or id(node) in leads:
            leads.add(id(node))
            leads.update(map(id, values.makers(node)))
    read: set[int] = set()  # values that the backward computes with
    for node in reversed(rest):
        gathers = node.name == "stablehlo.add" or values.is_cheap(node)
        if gathers and read.isdisjoint(map(values.find, node.results)):
            leads.discard(id(node))
        if id(node) in leads:
            read.update(map(values.find, node.reads))
    return [node for node in rest if id(node) in leads], [node for node in rest if id(node) not in leads]


def _delayed(step: TrainStep, forward: list[StepNode], everywhere: set[int]) -> list[StepNode]:
    """The forward, with each cheap op that depends on no other stage moved right before its first reader."""
    values = step.values
    light: set[int] = set()
    for node in forward:
        made = [values.producer[values.find(each)] for each in node.reads if values.find(each) not in everywhere]
        if node.name not in _HEAVY and all(each is not None and id(each) in light for each in made):
            light.add(id(node))
    order: dict[int, StepNode] = {}
    for node in (*(each for each in forward if id(each) not in light), *forward):  # light ones last: for the backward
        if id(node) not in order:
            def is_due(each: StepNode, node: StepNode = node) -> bool:
                return each is node or (id(each) in light and id(each) not in order)

            order.update((id(each), each) for each in closure(values, node.results, is_due)[0])
    return list(order.values())


# ---- cuts of stages inside loops over layers: each iteration of such a loop counts as an op of the forward pass


MOST_ITERATIONS = 256
"""A loop that runs more often counts as one op."""
_NUMBER = "hlorewrite.op_number"


@dataclass(frozen=True)
class NumberedGraph:
    """A step in which loops were cut, and the numbers of its ops.

    Attributes:
      graph: the step.
      numbers: for each node of the forward, the number of ops up to and including it, each iteration of a loop counted
        as one; None for nodes made by cutting.
    """

    graph: CutGraph
    numbers: tuple[int | None, ...]

    def number(self, count: int) -> int:
        """The number of the cut after a given number of nodes of the forward pass."""
        return next((each for each in reversed(self.numbers[:count]) if each is not None), 0)

    def count(self, number: int) -> int:
        """How many nodes of the forward pass are before a cut."""
        known = [each for each in self.numbers if each is not None and each <= number]
        return len(self.numbers) - self.numbers[::-1].index(max(known)) if known else 0


def iterations_of(op: ir.Operation | None) -> int:
    """The weight of an op of the forward pass: its iterations for a loop that can be cut, otherwise 1."""
    trips = trip_count(op) if op is not None and op.name == "stablehlo.while" else None
    return trips if trips is not None and 1 < trips <= MOST_ITERATIONS else 1


def ops_counted(graph: CutGraph) -> int:
    """How many ops a forward pass has, each iteration of a loop counted as one."""
    return sum(iterations_of(node.op) for node in graph.forward)


def inside_loops(graph: CutGraph, cuts: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """The cuts that are inside loops: iterations, by the key of the loop.

    Args:
      graph: the step.
      cuts: how many ops are before each, an iteration of a loop being one.
    """
    found: dict[int, tuple[int, ...]] = {}
    before = 0
    for node in graph.forward:
        count = iterations_of(node.op)
        places = tuple(cut - before for cut in cuts if before < cut < before + count)
        if places and node.op is not None:
            found[op_key(node.op)] = places
        before += count
    return found


def cut_inside(module: Module, graph: CutGraph, wanted: Mapping[int, Sequence[int]], microbatches: int
               ) -> NumberedGraph:
    """Cuts loops of the forward pass, and those of the backward pass that run over the same layers.

    Args:
      module: the step, without calls and marks; it is changed.
      graph: what can be cut of it.
      wanted: iterations before which loops of the forward are cut, by the key of the loop.
      microbatches: how often the loop over micro-batches runs; 0 for any number.

    Returns:
      The parts of the step between which cuts are then possible.
    """
    number = 0
    with module.context:
        i64 = ir.IntegerType.get_signless(64)
        for node in graph.forward:
            number += iterations_of(node.op)
            if node.op is not None:
                node.op.attributes[_NUMBER] = ir.IntegerAttr.get(i64, number)
    left = _cut_loops(graph, wanted)
    if wanted:  # rows that forward and backward read are one slice, stacks of which only parts are read are gone
        make_rows_direct(Editor(graph.step.view), Loop(graph.step.loop).body)
        passmanager.PassManager.parse("builtin.module(cse)", module.context).run(module.operation)
    made = read_cut_graph(View(module), microbatches) if wanted else graph
    numbers: list[int | None] = []
    for node in made.forward:
        tag = node.op.attributes[_NUMBER] if node.op is not None and _NUMBER in node.op.attributes else None
        numbers.append(None if tag is None or node.op is None else
                       ir.IntegerAttr(tag).value - left.get(op_key(node.op), 0))
    for op in ops_of(Loop(made.step.loop).body):
        if _NUMBER in op.attributes:
            del op.attributes[_NUMBER]
    return NumberedGraph(made, tuple(numbers))


def _cut_loops(graph: CutGraph, wanted: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Cuts loops; for each loop that replaces one of the forward, by its key, how many iterations come after it.

    The loops of the backward over the same layers are found by their rows: they read rows of parameters that the
    forward reads, or rows that it writes.
    """
    editor = Editor(graph.step.view)
    loops = [node.op for node in graph.step.body if node.op is not None and iterations_of(node.op) > 1]
    rows = {op_key(op): _rows_by_stack(op) for op in loops}
    inside = {key: set(places) for key, places in wanted.items()}
    for key, places in wanted.items():
        for other in rows:
            if other not in wanted:
                inside.setdefault(other, set()).update(_same_places(rows[key], rows[other], places))
    left: dict[int, int] = {}
    for op in loops:
        key, trips = op_key(op), iterations_of(op)
        ranges = list(pairwise([0, *sorted(inside.get(key, ())), trips]))
        if len(ranges) > 1:
            pieces = cut_loop(editor, Loop(op), ranges)
            if key in wanted:
                left.update((op_key(piece), trips - high) for piece, (_, high) in zip(pieces, ranges, strict=True))
    return left


def _rows_by_stack(op: ir.Operation) -> dict[ir.Value, tuple[int, ...]]:
    """The row that each iteration of a loop reads or writes of each stack outside of it."""
    roles = iter_arg_kinds(Loop(op), [(0, iterations_of(op))])
    return {value: role.rows for kind, values in ((READ_ROWS, op.operands), (WRITTEN_ROWS, op.results))
            for value, role in zip(values, roles, strict=True) if role.kind == kind}


def _same_places(mine: Mapping[ir.Value, tuple[int, ...]], others: Mapping[ir.Value, tuple[int, ...]],
                 places: Sequence[int]) -> set[int]:
    """The iterations at which another loop over the same rows is to be cut; none if it is over others."""
    for stack, rows in mine.items():
        if others.get(stack) == rows:
            return set(places)
        if others.get(stack) == rows[::-1]:
            return {len(rows) - place for place in places}
    return set()
