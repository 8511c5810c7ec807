"""Rematerialises values that a few ops make from constants, such as masks, in each loop, so no kernel reads them from
memory.

JAX carries the mask of an attention through a scan of layers. XLA recomputes it in the kernels of the body. But an
operand of a loop stays a buffer, which copies of the body outside the loop read: a mask and its fill values are 192 MiB
for each softmax of 16 heads and 4 sequences of 1024 tokens.
"""

from collections.abc import Sequence

from hlorewrite.ir import Editor, Loop, View, ancestors, defining_op, element_count, ir, op_key, terminator, users
from hlorewrite.ops.attributes import constant_attribute
from hlorewrite.passes.common.loop_copies.kept_sources import is_kept, is_small_source, keep_sources, kept
from hlorewrite.passes.common.value_numbers import ValueNumbers

_FROM_NOTHING = ("stablehlo.iota", "stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert",
                 "stablehlo.compare", "stablehlo.select", "stablehlo.and", "stablehlo.or", "stablehlo.not",
                 "stablehlo.add", "stablehlo.subtract", "stablehlo.multiply", "stablehlo.negate")
_MOST_OPS = 16
"""Up to this many elementwise ops still fuse into the kernel that reads their result."""


def read_outside(loop: Loop, editor: Editor) -> list[ir.Operation]:
    """Makes a loop read values that it carries unchanged, and that a few ops make from constants, from before the loop.

    Args:
      loop: the loop; afterwards nothing reads such a carried value, in the body or after the loop.
      editor: the editor of the module.

    Returns:
      The ops that make those values, each after those it reads.
    """
    end = terminator(loop.body)
    made: dict[int, ir.Operation] = {}
    for slot, argument in enumerate(loop.body.arguments):
        first = loop.op.operands[slot]
        if loop.yields[slot] != argument or element_count(argument.type) < 2 or users(loop.condition.arguments[slot]):
            continue
        makers = _makers(first, editor.view)
        if keep_sources(makers, editor):
            makers = _makers(first, editor.view)
        readers = [(reader, number) for reader, number in users(argument) if reader != end]
        if makers and (readers or users(loop.op.results[slot])):
            for reader, number in readers:
                editor.set_operand(reader, number, first)
            editor.replace(loop.op.results[slot], first)
            made |= {op_key(op): op for op in makers if op_key(op) not in made}
    return list(made.values())


def keep_small_sources(loop: Loop, editor: Editor) -> None:
    """Makes small tensors that ops of a loop's body repeat once, before the loop, for the body to read.

    Otherwise each kernel that reads a mask recomputes it, in the loop and in the copy of its body, and XLA weighs every
    way to do so.

    Args:
      loop: the loop.
      editor: the editor of the module.
    """
    numbers = ValueNumbers(editor.view)
    sources = [(op, makers, numbers.of(op.results[0])) for op in (each.operation for each in loop.body.operations)
               if is_small_source(op) and (makers := _makers(op.results[0], editor.view))]
    made: dict[int, ir.Value] = {}
    for op, makers, number in sources:
        if number not in made:
            made[number] = kept(op.results[0], makers, op, editor)
        editor.replace(op.results[0], made[number])
    for maker in reversed({op_key(maker): maker for _, makers, _ in sources for maker in makers}.values()):
        editor.erase_if_dead(maker)


def fill_again(op: ir.Operation, fillings: Sequence[ir.Operation], editor: Editor) -> None:
    """Copies into a loop the ops before it that its body reads.

    Args:
      op: the loop.
      fillings: each after those it reads.
      editor: the editor of the module.
    """
    body = Loop(op).body
    for filling in reversed(fillings):
        uses = [(reader, number, position) for position, result in enumerate(filling.results)
                for reader, number in users(result)
                if body in (reader.block, *(outer.block for outer in ancestors(reader)))]
        if uses:
            copy = editor.clone_before(filling, body.operations[0].operation)
            for reader, number, position in uses:
                editor.set_operand(reader, number, copy.results[position])
        editor.erase_if_dead(filling)


def _makers(value: ir.Value, view: View) -> list[ir.Operation]:
    """The ops that make a value from splat constants, each after those it reads; none if it needs other ops."""
    made: dict[int, ir.Operation] = {}
    entered = set[int]()
    pending = [value]
    # Ends: an op is entered once, and no more than a few.
    while pending:
        maker = defining_op(pending[-1])
        if maker is not None and is_kept(maker):
            pending.pop()
            continue
        if maker is None or len(entered) > _MOST_OPS or not _from_nothing(maker, view):
            return []
        if op_key(maker) in entered:
            made.setdefault(op_key(maker), maker)
            pending.pop()
        else:
            entered.add(op_key(maker))
            pending += maker.operands
    return list(made.values())


def _from_nothing(op: ir.Operation, view: View) -> bool:
    """Whether an op computes the same from the same operands anywhere, fused into the kernel that reads it."""
    if op.name == "func.call":
        callee = view.callee(op)
        inner = [] if callee is None else [each.operation for each in callee.regions[0].blocks[0].operations][:-1]
        return 0 < len(inner) <= _MOST_OPS and all(_from_nothing(each, view) for each in inner)
    attribute = constant_attribute(op)
    return op.name in _FROM_NOTHING or (attribute is not None and attribute.is_splat)
