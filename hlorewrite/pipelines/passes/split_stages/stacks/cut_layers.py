"""Cuts layers at stage boundaries: those of a loop, which becomes a loop for each stage, and unrolled ones."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from hlorewrite.analysis.loops import trip_count
from hlorewrite.errors import InputError
from hlorewrite.ir import Editor, Loop, View, ancestors, ir, op_key, op_name
from hlorewrite.passes.common.loop_copies.copies import body_in_place
from hlorewrite.pipelines.passes.split_stages.graph import captured, ops_of
from hlorewrite.pipelines.passes.split_stages.remat import RECOMPUTED
from hlorewrite.pipelines.passes.split_stages.stacks.cut_loops import cut_loop
from hlorewrite.pipelines.passes.split_stages.stacks.direct_rows import make_rows_direct, whole_origin
from hlorewrite.pipelines.passes.split_stages.stacks.layer_loops import (
    LayerLoop,
    LayerMark,
    edges_of,
    is_layer_mark,
    layer_loops,
    layer_marks,
    said_by,
)
from hlorewrite.pipelines.passes.split_stages.step import stage_mark


def cut_layer_loops(view: View) -> int:
    """Cuts each loop over layers in which stages begin, and drops the marks of layers.

    Stacks of which each iteration reads or writes a row, and sums, become one per stage. Other carried values get the
    mark of the stage. Unrolled layers are cut in the same way.

    Args:
      view: the view of a module without calls.

    Returns:
      How many loops were cut.

    Raises:
      InputError: a mark is not in a loop over layers, or its boundaries do not fit.
    """
    editor = Editor(view)  # of no rule: names in locations say what is a backward
    written_out = cut_written_out(view, editor)
    loops = layer_loops(view)
    for each in loops:
        if len(each.edges) > 2:
            cut_loop(editor, each.loop, [(low, high) for _, low, high in each.pieces], functools.partial(
                _marked, editor, each))
    for op in layer_marks(view):
        editor.replace(op.results[0], op.operands[0])
        editor.erase(op)
    for block in bodies(view):
        make_rows_direct(editor, block)
    return written_out + sum(len(each.edges) > 2 for each in loops)


def _marked(editor: Editor, item: LayerLoop, value: ir.Value, number: int) -> ir.Value:
    """What is carried from one stage to the next: to the following one, or back."""
    stage = item.pieces[number][0]
    index = stage if item.backward else stage + 1
    loop = item.loop.op.location  # in the body of a loop, names do not say that it is computed again
    where = loop if RECOMPUTED in op_name(loop) else item.mark.location
    return stage_mark(editor, value, (index, item.backward), where, item.loop.op)


# ---- unrolled layers: ``lax.scan(..., unroll=k)``, its remainder, and Python loops over layers

# A mark's layer number is the number of marks of its kind that it depends on; a loop counts once per layer that it
# runs. A loop with several layers per iteration is cut between iterations. An iteration in which a stage begins is
# unrolled.


@dataclass(frozen=True)
class _LayerRun:
    """Consecutive layers: those of a loop, or that of a single mark.

    Attributes:
      op: the loop or the mark.
      start: how many layers come before it, in the order in which they run.
      each: layers of an iteration; 1 for a mark.
      times: iterations; 1 for a mark.
    """

    op: ir.Operation
    start: int
    each: int
    times: int


def cut_written_out(view: View, editor: Editor) -> int:
    """Cuts layers that are not one iteration of a loop each, and drops their marks.

    Args:
      view: the view of a module without calls.
      editor: the editor of the module.

    Returns:
      How many chains of layers were cut.

    Raises:
      InputError: boundaries do not fit the number of layers.
    """
    cut = 0
    for block in bodies(view):
        chains = {(said.boundaries, said.first) for op in _marks_in(block) for said in [said_by(op)]}
        for boundaries, first in sorted(chains):
            chain = _LayerChain(view, editor, block, boundaries, first)
            if chain.is_written_out():
                chain.cut()
                cut += 1
    return cut


def bodies(view: View) -> list[ir.Block]:
    """The bodies of loops of the main function: one is over the micro-batches."""
    return [Loop(op).body for op in view.ops("stablehlo.while") if len(list(ancestors(op))) == 1]


def _marks_in(block: ir.Block) -> list[ir.Operation]:
    """The marks of layers in a block, and in loops in it."""
    found: list[ir.Operation] = []
    for op in ops_of(block):
        if op.name == "stablehlo.while":
            found += [each for each in ops_of(Loop(op).body) if is_layer_mark(each)]
        elif is_layer_mark(op):
            found.append(op)
    return found


class _LayerChain:
    """The layers of a micro-batch whose marks say the same."""

    def __init__(self, view: View, editor: Editor, block: ir.Block, boundaries: str, first: int) -> None:
        self.view, self.editor, self.block = view, editor, block
        self.sent: dict[ir.Value, ir.Value] = {}  # what a stage sends -> what the next one receives
        self.forward, self.backward = (LayerMark(boundaries, first, backward) for backward in (False, True))

    def is_written_out(self) -> bool:
        """Whether some layer is not one iteration of a loop."""
        runs = [*self.runs(self.forward)[0], *self.runs(self.backward)[0]]
        return any(run.op.name != "stablehlo.while" or run.each > 1 for run in runs)

    def runs(self, wanted: LayerMark, again: bool = False) -> tuple[list[_LayerRun], int]:
        """The runs of layers with some mark, in the order of the program, and how many layers there are.

        Args:
          wanted: the mark.
          again: what ``jax.checkpoint`` makes again, instead of the rest.
        """
        sizes = {op_key(op): self.layers_of(op, wanted, again) for op in ops_of(self.block)}
        found, count = _in_turn(self.block, lambda op: math.prod(sizes[op_key(op)]))
        return [_LayerRun(op, start, *sizes[op_key(op)]) for op, start in found], count

    def layers_of(self, op: ir.Operation, wanted: LayerMark, again: bool) -> tuple[int, int]:
        """(layers of an iteration, iterations) of an op; no layer for any other op."""
        if is_layer_mark(op):
            return int(_is_such(op, wanted, again)), 1
        inside = [each for each in ops_of(Loop(op).body) if is_layer_mark(each)] if op.name == "stablehlo.while" else []
        both = not wanted.backward and any(said_by(each) == self.backward for each in inside)
        if both or not any(_is_such(each, wanted, again) for each in inside):  # a backward makes its layers again
            return 0, 1
        times = trip_count(op)
        if times is None:
            raise InputError("the trip count of the loop over layers is unknown", location=self.view.source(op),
                             hint="use lax.scan, or lax.fori_loop with Python integers as bounds")
        return _marks_in_turn(Loop(op).body, wanted, again), times

    # ---- cutting

    def cut(self) -> None:
        """Writes the marks of stages, and drops those of layers."""
        runs, layers = self.runs(self.forward)
        where = self.view.source(runs[0].op if runs else next(iter(_marks_in(self.block))))
        edges = edges_of(self.forward.boundaries, layers, where)
        for wanted, again in ((self.forward, False), (self.backward, False), (self.forward, True)):
            runs, count = self.runs(wanted, again)
            if again and count != layers:  # single layers that are made again, from what was kept
                continue
            marked = {layers - edge if wanted.backward else edge: self.forward.first + number
                      for number, edge in enumerate(edges[1:-1], start=1)}
            for run in runs:
                if run.op.name == "stablehlo.while":
                    self.cut_loop(run, wanted, marked)
            for run in self.runs(wanted, again)[0]:
                if run.op.name != "stablehlo.while":
                    self.take_mark(run, wanted, marked.get(run.start + int(wanted.backward)))
        make_rows_direct(self.editor, self.block)
        for op in _marks_in(self.block):
            if said_by(op) in (self.forward, self.backward):
                value: ir.Value = op.operands[0]
                self.editor.replace(op.results[0], self.sent.get(whole_origin(value), value))
                self.editor.erase(op)

    def cut_loop(self, run: _LayerRun, wanted: LayerMark, marked: dict[int, int]) -> None:
        """Cuts a loop where stages begin between its iterations, and writes out an iteration in which one begins.

        ``marked`` has the stage that begins after so many layers, in the order in which they run. A forward's mark
        is before its layer and a backward's after it: so the first iteration of the one and the last of the other
        are written out where a stage begins at the end of the loop that they are at.
        """
        back = int(wanted.backward)
        here = {count - run.start: stage for count, stage in marked.items()
                if back <= count - run.start < run.each * run.times + back}
        between = {count // run.each: stage for count, stage in here.items()
                   if count % run.each == 0 and 0 < count < run.each * run.times}
        apart = {(count - back) // run.each for count in here if count % run.each or count // run.each not in between}
        edges = sorted({0, run.times, *between, *apart, *(each + 1 for each in apart)})
        ranges = list(pairwise(edges))
        mark = next(op for op in ops_of(Loop(run.op).body) if is_layer_mark(op) and said_by(op) == wanted)
        where = run.op.location if RECOMPUTED in op_name(run.op.location) else mark.location

        def passed(value: ir.Value, number: int) -> ir.Value:
            stage = between.get(ranges[number][1])
            return value if stage is None else stage_mark(self.editor, value, (stage, wanted.backward), where, run.op)

        pieces = cut_loop(self.editor, Loop(run.op), ranges, passed) if len(ranges) > 1 else [run.op]
        for piece, (low, _) in zip(pieces, ranges, strict=True):
            if low in apart:
                _write_out(self.editor, piece)

    def take_mark(self, run: _LayerRun, wanted: LayerMark, stage: int | None) -> None:
        """Turns the mark of a layer into the mark of a stage if a stage begins there."""
        value = run.op.operands[0]
        made = value if stage is None else stage_mark(
            self.editor, value, (stage, wanted.backward), run.op.location, run.op)
        if stage is not None and not wanted.backward:
            self.sent.setdefault(value, made)
        self.editor.replace(run.op.results[0], made)
        self.editor.erase(run.op)


def _is_such(op: ir.Operation, wanted: LayerMark, again: bool) -> bool:
    """Whether an op is a mark of layers that says the same, made again or not."""
    if not is_layer_mark(op) or said_by(op) != wanted:
        return False
    around = op.parent
    names = op_name(op.location) + (op_name(around.operation.location) if around is not None else "")
    return wanted.backward or (RECOMPUTED in names) == again


def _marks_in_turn(block: ir.Block, wanted: LayerMark, again: bool) -> int:
    """The length of the longest chain of dependent marks of a kind."""
    return _in_turn(block, lambda op: int(_is_such(op, wanted, again)))[1]


def _in_turn(block: ir.Block, layers: Callable[[ir.Operation], int]) -> tuple[list[tuple[ir.Operation, int]], int]:
    """(Ops with layers, each with how many layers precede it along its operands; the length of the longest chain.)
    """
    depth: dict[ir.Value, int] = {}
    found: list[tuple[ir.Operation, int]] = []
    for op in ops_of(block):
        if op.name == "stablehlo.optimization_barrier":
            depth.update((result, depth.get(operand, 0)) for operand, result in
                         zip(op.operands, op.results, strict=True))
            continue
        start, own = max((depth.get(each, 0) for each in (*op.operands, *captured(op))), default=0), layers(op)
        if own:
            found.append((op, start))
        depth.update(dict.fromkeys(op.results, start + own))
    return found, max(depth.values(), default=0)


def _write_out(editor: Editor, loop: ir.Operation) -> None:
    """Puts the body of a loop with one iteration in its place."""
    if RECOMPUTED in op_name(loop.location):  # the names of what is inside do not say that
        for mark in filter(is_layer_mark, ops_of(Loop(loop).body)):
            mark.location = loop.location
    body_in_place(Loop(loop), editor)
