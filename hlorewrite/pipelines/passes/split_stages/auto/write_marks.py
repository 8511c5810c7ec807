"""Writes the marks of a cut: one on each value that crosses from stage to stage, and one on each cotangent back."""

from collections.abc import Sequence

from hlorewrite.ir import Editor, ir, nested_ops
from hlorewrite.pipelines.passes.split_stages.auto.cut_graph import CutGraph
from hlorewrite.pipelines.passes.split_stages.graph import StepNode
from hlorewrite.pipelines.passes.split_stages.stage_assignment import is_backward
from hlorewrite.pipelines.passes.split_stages.step import stage_mark


def write_marks(graph: CutGraph, editor: Editor, cuts: Sequence[int], halves: Sequence[int]) -> None:
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

    def __init__(self, graph: CutGraph, editor: Editor) -> None:
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
