"""Cuts layers at stage boundaries: a loop of L layers becomes a loop for each stage, with marks between."""

import functools

from hlorewrite.ir import Editor, View, ir, op_name
from hlorewrite.pipelines.passes.split_stages.remat import RECOMPUTED
from hlorewrite.pipelines.passes.split_stages.stacks.cut_loops import cut_loop
from hlorewrite.pipelines.passes.split_stages.stacks.direct_rows import make_rows_direct
from hlorewrite.pipelines.passes.split_stages.stacks.layer_loops import LayerLoop, layer_loops, layer_marks
from hlorewrite.pipelines.passes.split_stages.stacks.unrolled import bodies, cut_written_out
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
