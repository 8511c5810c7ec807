"""Why a reduction of what a loop stacks stays after the loop."""

from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.regions import Loop
from hlorewrite.ir.view import defining_op, terminator, users
from hlorewrite.passes.common.stacked_rows import row_stacks
from hlorewrite.passes.sink_reductions.find import ELEMENTWISE

_MOST_OPS = 64


def why_not_sunk(reduction: ir.Operation) -> tuple[ir.Operation, str] | None:
    """The loop that stacks what a reduction reduces, and why the reduction stays after it.

    Args:
      reduction: an all-reduce that was found not to go into a loop.

    Returns:
      (the loop, the reason as the end of a sentence); None when no loop stacks what it reduces.
    """
    seen: set[int] = set()
    pending = list(reduction.operands)
    read_elsewhere = False
    for value in pending:  # Ends: the operands of an op are added once.
        op = defining_op(value)
        if op is None or op.block != reduction.block:
            continue
        if op.name == "stablehlo.while":
            position = ir.OpResult(value).result_number
            if _writes_rows(Loop(op), position):
                return op, _reason(op, position, read_elsewhere or len(users(value)) > 1)
        elif op.name in ELEMENTWISE and op_key(op) not in seen and len(seen) < _MOST_OPS:
            seen.add(op_key(op))
            read_elsewhere |= len(users(value)) > 1
            pending += op.operands
    return None


def _writes_rows(loop: Loop, position: int) -> bool:
    """Whether a loop writes a part of a carried tensor in each iteration."""
    update = defining_op(loop.yields[position])
    return update is not None and update.name == "stablehlo.dynamic_update_slice" and update.block == loop.body


def _reason(op: ir.Operation, position: int, read_elsewhere: bool) -> str:
    loop = Loop(op)
    if trip_count(op) is None:
        return "it is not known how often it runs, so not whether it writes each row"
    if users(loop.condition.arguments[position]) or any(
            reader != defining_op(loop.yields[position]) and reader != terminator(loop.body)
            for reader, _ in users(loop.body.arguments[position])):
        return "the loop itself reads the tensor it stacks"
    if position not in row_stacks(loop):
        return "it is not known that it writes each row once"
    if read_elsewhere:
        return "what it stacks has another reader after it"
    return "what is computed between it and the reduction cannot be computed row by row in it"
