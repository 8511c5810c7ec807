"""A step without marks in a form that can be cut: the ops of its forward and of its backward pass, each in a fixed
order.

Forward ops are in program order, except that cheap ops that depend on the micro-batch alone, such as the embedding of a
decoder's tokens, come right before their first reader. A cut is a number of forward ops. JAX writes the backward in the
reverse order of the forward, so for each cut a single place in the backward separates the two sides: the one at which
least is sent.
"""

from dataclasses import dataclass

from hlorewrite.analysis.loops import trip_count
from hlorewrite.errors import InputError
from hlorewrite.ir import View, ancestors, ir, op_name
from hlorewrite.pipelines.passes.split_stages.graph import StepNode, closure
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
