"""The body of a loop in the place of the loop, where it runs once."""

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.regions import Loop


def body_in_place(loop: Loop, editor: Editor) -> list[ir.Operation]:
    """Moves the ops of a body before its loop, which is erased.

    Args:
      loop: the loop; it runs once.
      editor: the editor of the module.

    Returns:
      The ops that were moved.
    """
    for argument, operand in zip(loop.body.arguments, loop.op.operands, strict=True):
        editor.replace(argument, operand)
    ends = list(loop.yields)
    moved = [each.operation for each in loop.body.operations][:-1]
    for inner in moved:
        editor.move_before(inner, loop.op)
    for result, end in zip(loop.op.results, ends, strict=True):
        editor.replace(result, end)
    editor.erase(loop.op)
    return moved
