"""Makes a layer loop add to local sums row by row, instead of stacking rows that are added later.

A scan over layers stacks their gradients, and the sums of earlier micro-batches are added to the whole stack after it,
so two copies of the gradients are live. With rows x_i, each written once, and sums t,

    t + stack_i x_i = stack_i (t[i] + x_i),

where the stack starts as t and the loop replaces its rows one by one. Each element is the same sum of the same two
numbers. With a reduce-scatter in the loop, the stack held shards. Once that is deferred, the stack holds whole
gradients, and a second copy of them may exhaust memory.
"""

from dataclasses import dataclass

from hlorewrite.ir import REDUCE_SCATTER, Editor, Loop, View, defining_op, ir, users
from hlorewrite.passes.common.stacked_rows import RowStack, row_of, row_stacks

_ADD = "stablehlo.add"
_ELEMENTWISE = (_ADD, "stablehlo.multiply", "stablehlo.divide", "stablehlo.convert")
_MOST_STEPS = 256


@dataclass(frozen=True)
class StackedSum:
    """A stack of a loop that is added to a value from before the loop, without other readers.

    Attributes:
      stack: the stack.
      add: the sum, the only reader of both addends.
      base: the other addend.
    """

    stack: RowStack
    add: ir.Operation
    base: ir.Value


def accumulate_in_place(view: View, editor: Editor) -> None:
    """Makes stacks start as the sums they are added to, if a reduce-scatter reads the results.

    Args:
      view: the view of the module.
      editor: its editor.
    """
    for op in view.ops("stablehlo.while"):
        for found in stacked_sums(Loop(op)):
            if _is_scattered(found.add.results[0]):
                _accumulate(op, found, editor)


def stacked_sums(loop: Loop) -> list[StackedSum]:
    """The stacks of a loop that may start as the sums they are added to.

    Args:
      loop: the loop.
    """
    found = (_stacked_sum(loop, stack) for stack in row_stacks(loop).values())
    return [each for each in found if each is not None]


def _stacked_sum(loop: Loop, stack: RowStack) -> StackedSum | None:
    readers = users(loop.op.results[stack.position])
    if len(readers) != 1 or readers[0][0].name != _ADD or readers[0][0].block != loop.op.block:
        return None
    add, number = readers[0]
    base = add.operands[1 - number]
    return StackedSum(stack, add, base) if users(base) == [(add, 1 - number)] and _precedes(base, loop.op) else None


def _precedes(value: ir.Value, op: ir.Operation) -> bool:
    """Whether a value exists before an op: it is an argument around it, or made by an op before it."""
    maker = defining_op(value)
    return maker is None or (maker.block == op.block and maker.is_before_in_block(op))


def _is_scattered(value: ir.Value) -> bool:
    """Whether a reduce-scatter reads a value, through elementwise ops and loop carries."""
    seen, pending = {value}, [value]
    for _ in range(_MOST_STEPS):
        if not pending:
            return False
        for reader, number in users(pending.pop()):
            if reader.name == REDUCE_SCATTER.op:
                return True
            made = list(reader.results) if reader.name in _ELEMENTWISE else _carried_out(reader, number)
            pending += [each for each in made if each not in seen]
            seen.update(made)
    return False


def _carried_out(reader: ir.Operation, number: int) -> list[ir.Value]:
    """The result of a loop whose body yields a value there."""
    around = reader.parent
    if reader.name != "stablehlo.return" or around is None or around.operation.name != "stablehlo.while":
        return []
    return [around.operation.results[number]] if reader.block == Loop(around.operation).body else []


def _accumulate(op: ir.Operation, found: StackedSum, editor: Editor) -> None:
    """Makes the stack start as the sums, and adds each row to the row that the stack holds."""
    stack, update = found.stack, found.stack.update
    row, before = stack.row, row_of(update.operands[0], stack, editor)
    own = (row, before) if found.add.operands[1] == found.base else (before, row)
    both = editor.create(_ADD, own, [row.type], location=found.add.location, before=update).results[0]
    editor.set_operand(update, 1, both)
    editor.set_operand(op, stack.position, found.base)
    editor.replace(found.add.results[0], op.results[stack.position])
    editor.erase(found.add)
