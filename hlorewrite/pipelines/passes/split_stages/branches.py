"""Branches of an update written as choices between values, so that each parameter's part stays with it.

``lax.cond`` around an update, as in gradient accumulation over steps or in skips of updates that are not finite, is one
op that reads and returns the state of all stages. If it is rewritten as a ``select`` between the results of both
branches, each op can be placed by itself. Both branches then run in every step.
"""

from collections.abc import Sequence

from hlorewrite.ir import BRANCHES, Editor, View, element_count, ir, nested_ops, terminator
from hlorewrite.ops.table import OpClass, ops_of
from hlorewrite.pipelines.passes.split_stages.graph import captured
from hlorewrite.pipelines.passes.split_stages.graph import ops_of as ops_of_block
from hlorewrite.pipelines.passes.split_stages.step import find_loop

_CLASSES = (OpClass.ELEMENTWISE, OpClass.MOVE, OpClass.INDEXED, OpClass.REDUCTION, OpClass.CONTRACTION, OpClass.SAME,
            OpClass.CONSTANT, OpClass.TERMINATOR)
_PLAIN = ops_of(*_CLASSES) | frozenset(BRANCHES)
"""Ops that end and have no effect, whether their result is chosen or not."""


def write_branches_as_choices(view: View, editor: Editor) -> list[ir.Operation]:
    """Writes out the branches after the loop over micro-batches, with a ``select`` for each result.

    Args:
      view: a step without calls, stage marks written as barriers.
      editor: the editor of its module.

    Returns:
      The branches that stay, because they contain loops, random numbers or unknown ops.
    """
    main = view.functions["main"]
    loop = find_loop(view, main)[0]
    ops, kept = ops_of_block(main.regions[0].blocks[0]), []
    for op in ops[next(i for i, each in enumerate(ops) if each == loop) + 1:]:
        if op.name in BRANCHES and _holds_tensors(op):
            if all(inner.name in _PLAIN for inner in nested_ops(op)):
                _write_out(editor, op, op)
            else:
                kept.append(op)
    return kept


def _holds_tensors(op: ir.Operation) -> bool:
    return any((element_count(value.type) or 0) > 1 for value in (*op.results, *captured(op)))


def _write_out(editor: Editor, op: ir.Operation, before: ir.Operation) -> None:
    """Writes all branches of an op, nested ones included, before another op, and a ``select`` for each of its results.
    """
    given: list[list[ir.Value]] = []
    for region in op.regions:
        block = region.blocks[0]
        for inner in ops_of_block(block):
            if inner.name in BRANCHES:
                _write_out(editor, inner, inner)
        for inner in ops_of_block(block):
            editor.move_before(inner, before)
        given.append(list(terminator(block).operands))
    for number, result in enumerate(op.results):
        editor.replace(result, _chosen(editor, op, [values[number] for values in given], before))
    editor.erase(op)


def _chosen(editor: Editor, op: ir.Operation, values: Sequence[ir.Value], before: ir.Operation) -> ir.Value:
    """One of several values: the last for any number that names none, as the op has it."""
    chosen = values[-1]
    for number in reversed(range(len(values) - 1)):
        if values[number] != chosen:
            predicate = op.operands[0] if op.name == "stablehlo.if" else _is_number(editor, op, number, before)
            chosen = editor.create("stablehlo.select", [predicate, values[number], chosen], [chosen.type],
                                   location=op.location, before=before).results[0]
    return chosen


def _is_number(editor: Editor, op: ir.Operation, number: int, before: ir.Operation) -> ir.Value:
    """Whether the index of a ``case`` is a number."""
    index = op.operands[0]
    with editor.context, op.location:
        value = ir.DenseElementsAttr.get_splat(index.type, ir.IntegerAttr.get(
            ir.RankedTensorType(index.type).element_type, number))
        direction = ir.Attribute.parse("#stablehlo<comparison_direction EQ>")
        kind = ir.Attribute.parse("#stablehlo<comparison_type SIGNED>")
        boolean = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))
    constant = editor.create("stablehlo.constant", [], [index.type], attributes={"value": value}, location=op.location,
                             before=before)
    return editor.create("stablehlo.compare", [index, constant.results[0]], [boolean], location=op.location,
                         attributes={"comparison_direction": direction, "compare_type": kind},
                         before=before).results[0]
