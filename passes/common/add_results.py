"""Loops and branches with more results than they had."""

from collections.abc import Callable, Sequence

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.view import terminator

LOOP = "stablehlo.while"


def add_results(editor: Editor, op: ir.Operation, types: Sequence[ir.Type],
                      fill: Callable[[ir.Type, ir.Operation], ir.Value]) -> ir.Operation:
    """Rebuilds a loop or branch with more results, which hold what they are filled with.

    Args:
      editor: the editor of the module.
      op: the ``while``, ``case`` or ``if``; it is erased.
      types: types of the new results, which come last.
      fill: makes a value of a type before an op; what a loop starts with, what each branch returns.

    Returns:
      The new op. Values that a loop carries in addition pass through.
    """
    operands = list(op.operands)
    if op.name == LOOP:
        operands += [fill(each, op) for each in types]
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = editor.create(op.name, operands, [*(result.type for result in op.results), *types], attributes=attributes,
                        regions=len(op.regions), location=op.location, before=op)
    for number, (old_region, new_region) in enumerate(zip(op.regions, new.regions, strict=True)):
        block = old_region.blocks[0]
        block.append_to(new_region)
        _extend_block(editor, op.name, new_region.blocks[0], types, fill, is_condition=op.name == LOOP and number == 0)
    for old, replacement in zip(op.results, list(new.results)[:len(op.results)], strict=True):
        editor.replace(old, replacement)
    editor.erase(op)
    return new


def _extend_block(editor: Editor, name: str, block: ir.Block, types: Sequence[ir.Type],
                  fill: Callable[[ir.Type, ir.Operation], ir.Value], is_condition: bool) -> None:
    end = terminator(block)
    if name == LOOP:
        extra: list[ir.Value] = [block.add_argument(each, end.location) for each in types]
    else:
        extra = [fill(each, end) for each in types]
    if is_condition:
        return
    editor.create(end.name, [*end.operands, *extra], [], location=end.location, before=end)
    editor.erase(end)
