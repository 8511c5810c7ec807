"""Computes before an iteration whether the loop continues after it, from the values that its condition reads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlorewrite.ir import COLLECTIVES, MAY_HAVE_EFFECTS, Editor, Loop, element_count, ir, op_key
from hlorewrite.ir.view import block_ops, makers_of, terminator, users
from hlorewrite.util.reachability import postorder

_MOST_OPS = 16


@dataclass(frozen=True)
class NextCondition:
    """How a loop counts: its condition reads carried scalars that the body computes from such scalars alone.

    Attributes:
      slots: the positions of the carried values that the condition reads.
      ops: the ops of the body that compute their next values, program order.
    """

    slots: tuple[int, ...]
    ops: tuple[ir.Operation, ...]


def next_condition(loop: Loop) -> NextCondition | None:
    """How a loop counts; None if its condition depends on data that the body computes.

    Args:
      loop: a loop whose condition has no effects. Neither start, step nor bound has to be a constant.
    """
    slots = tuple(argument.arg_number for argument in loop.condition.arguments if users(argument))
    def makers(values: Iterable[ir.Value]) -> list[ir.Operation]:
        return [op for op in makers_of(values) if op.block == loop.body]

    cone = postorder(makers(loop.yields[slot] for slot in slots),
                     lambda op: makers(op.operands) if _counts(op) else None, op_key, _MOST_OPS)
    if cone is None:
        return None
    needed = set(map(op_key, cone))
    ordered = tuple(each.operation for each in loop.body.operations if op_key(each.operation) in needed)
    return NextCondition(slots, ordered)


def _counts(op: ir.Operation) -> bool:
    """Whether an op computes scalars, on each device by itself, and nothing else."""
    return (op.name.startswith("stablehlo.") and op.name not in (*MAY_HAVE_EFFECTS, *COLLECTIVES)
            and len(op.regions) == 0
            and all(element_count(result.type) == 1 for result in op.results))


def first_predicate(loop: Loop, editor: Editor) -> ir.Value:
    """The result of the condition before the first iteration: a copy of it before the loop."""
    return _copied(block_ops(loop.condition), loop, dict(zip(loop.condition.arguments, loop.op.operands, strict=True)),
                   loop.op, editor)


def end_one_earlier(loop: Loop, counting: NextCondition, editor: Editor) -> None:
    """Makes the condition also require that it holds after the iteration: ``c(x)`` becomes ``c(x) and c(f(x))``.

    A loop of m iterations then runs m - 1 times, and an empty loop stays empty. Numbers wrap around as before, since
    the comparison uses the body's own sum.

    Args:
      loop: the loop.
      counting: how it counts.
      editor: the editor of the module.
    """
    condition, end, now = block_ops(loop.condition), terminator(loop.condition), loop.predicate
    mapping: dict[ir.Value, ir.Value] = dict(zip(loop.body.arguments, loop.condition.arguments, strict=True))
    editor.clone_ops(counting.ops, end, mapping)
    after: dict[ir.Value, ir.Value] = {
        loop.condition.arguments[slot]: mapping.get(loop.yields[slot]) or loop.yields[slot] for slot in counting.slots}
    both = editor.create("stablehlo.and", [now, _copied(condition, loop, after, end, editor)], [now.type],
                         location=end.location, before=end)
    editor.set_operand(end, 0, both.results[0])


def _copied(condition: Sequence[ir.Operation], loop: Loop, mapping: dict[ir.Value, ir.Value], before: ir.Operation,
            editor: Editor) -> ir.Value:
    """A copy of the ops of a condition whose arguments are given; returns the predicate."""
    editor.clone_ops(condition, before, mapping)
    return mapping.get(loop.predicate) or loop.predicate
