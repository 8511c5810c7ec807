"""Cuts of stages inside loops over layers: each iteration of such a loop counts as an op of the forward pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir import Editor, Loop, Module, View, ir, op_key, passmanager
from hlorewrite.pipelines.passes.split_stages.auto.cut_graph import CutGraph, read_cut_graph
from hlorewrite.pipelines.passes.split_stages.graph import ops_of
from hlorewrite.pipelines.passes.split_stages.stacks.cut_loops import cut_loop
from hlorewrite.pipelines.passes.split_stages.stacks.direct_rows import make_rows_direct
from hlorewrite.pipelines.passes.split_stages.stacks.iter_arg_kinds import READ_ROWS, WRITTEN_ROWS, iter_arg_kinds

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
