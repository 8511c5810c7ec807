"""narrow-stacks: gradients that a layer loop stacks are kept in the type they were computed in, and widened after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import REDUCING
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, defining_op, users
from hlorewrite.passes.common.inlined_copy import ROWS, with_inlined
from hlorewrite.passes.common.pass_remarks import tell
from hlorewrite.passes.common.splats import splat_constant
from hlorewrite.passes.common.stacked_rows import RowStack, row_stacks
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.spmd.loops import Loop
from hlorewrite.spmd.types import element_bytes, is_floating, tensor_bytes

_RESHAPES = ("stablehlo.reshape", "stablehlo.broadcast_in_dim")
_SUMS = ("stablehlo.add", "stablehlo.multiply", "stablehlo.divide", "stablehlo.convert")
_MOST_STEPS = 256


@dataclass(frozen=True)
class NarrowStacks(Pass):
    """Stacks local gradients in the type they were computed in, and converts them where they are added up.

    A layer loop computes gradients in bf16, converts each to f32 and stacks them; after the loop they are added to sums
    in f32. While their reduction stood in the loop, the stack held shards. Once ``comm-shift`` has deferred it, the
    stack holds whole gradients, and the wider type costs as much again. With rows x_i, each written once,

        stack(convert(x_i)) = convert(stack(x_i)),

    bit for bit; the convert is part of the addition that reads it, and the sums stay in f32.

    Legal where the loop writes each row once, as ``row_stacks`` says, and the convert widens. Done where the stack goes
    into sums that a reduction after the loop reads, and elementwise ops alone read it.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> NarrowStacks().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "narrow-stacks"

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view = ctx.view(module)
        if not view.ops("stablehlo.while") or not view.ops(*REDUCING):
            return False
        return with_inlined(module, ctx, ROWS, lambda inlined, seen: self._on(inlined, seen, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        changed = False
        for op in view.ops("stablehlo.while"):
            found = {position: convert for position, stack in row_stacks(Loop(op)).items()
                     if (convert := _widening(stack)) is not None and _is_summed(op.results[position])}
            if found:
                saved = sum(tensor_bytes(op.results[position].type) for position in found)
                tell(ctx, "applied", self.name, f"{len(found)} stacked gradients of {saved} bytes are stacked in the "
                     "type they were computed in, and converted where they are added up", view, op)
                _narrow(Loop(op), found, ctx.editor(module, self.name))
                ctx.count("stacks narrowed", len(found))
                changed = True
        return changed


def _widening(stack: RowStack) -> ir.Operation | None:
    """The convert that widens what is stacked; None where none does, or where something else reads what it makes."""
    op = defining_op(stack.row)
    # Ends: each round goes to an operand.
    while op is not None and op.name in _RESHAPES and len(users(op.results[0])) == 1:
        op = defining_op(op.operands[0])
    if op is None or op.name != "stablehlo.convert" or len(users(op.results[0])) != 1:
        return None
    before, after = (ir.RankedTensorType(value.type).element_type for value in (op.operands[0], op.results[0]))
    if not is_floating(before) or not is_floating(after):
        return None
    return op if element_bytes(before) < element_bytes(after) else None


def _is_summed(result: ir.Value) -> bool:
    """Whether elementwise ops alone read a value, and what they make reaches a reduction."""
    if not all(reader.name in _SUMS for reader, _ in users(result)):
        return False
    seen, pending = {result}, [result]
    for _ in range(_MOST_STEPS):
        if not pending:
            return False
        for reader, number in users(pending.pop()):
            if reader.name in REDUCING:
                return True
            made = list(reader.results) if reader.name in _SUMS else _carried_out(reader, number)
            pending += [value for value in made if value not in seen]
            seen.update(made)
    return False


def _carried_out(reader: ir.Operation, number: int) -> list[ir.Value]:
    """The result of a loop whose body returns a value there."""
    around = reader.parent
    if reader.name != "stablehlo.return" or around is None or around.operation.name != "stablehlo.while":
        return []
    return [around.operation.results[number]] if reader.block == Loop(around.operation).body else []


def _narrow(loop: Loop, converts: dict[int, ir.Operation], editor: Editor) -> None:
    """A loop that stacks what converts read; its results are converted after it."""
    op = loop.op
    for position, convert in converts.items():
        element = ir.RankedTensorType(convert.operands[0].type).element_type
        wide, narrow = op.results[position].type, _with_element(op.results[position].type, element)
        readers = users(op.results[position])
        _stack_operand_of(convert, element, editor)
        for value in (op.results[position], loop.condition.arguments[position], loop.body.arguments[position],
                      loop.yields[position]):
            value.set_type(narrow)
        # What the stack holds before each of its rows is written does not matter.
        editor.set_operand(op, position, splat_constant(editor, _zero(element), narrow, op))
        widened = editor.create("stablehlo.convert", [op.results[position]], [wide], location=convert.location,
                                at=ir.InsertionPoint.after(op)).results[0]
        for reader, number in readers:
            editor.set_operand(reader, number, widened)
        editor.erase_if_dead(convert)


def _zero(element: ir.Type) -> ir.Attribute:
    with ir.Location.unknown(element.context):
        return ir.FloatAttr.get(element, 0.0)


def _stack_operand_of(convert: ir.Operation, element: ir.Type, editor: Editor) -> None:
    """What reads a convert, by way of reshapes, reads its operand."""
    reader, number = users(convert.results[0])[0]
    editor.set_operand(reader, number, convert.operands[0])
    # Ends: each round goes to the reader of a reshape; the update reads the last one.
    while reader.name in _RESHAPES:
        reader.results[0].set_type(_with_element(reader.results[0].type, element))
        reader = users(reader.results[0])[0][0]


def _with_element(type_: ir.Type, element: ir.Type) -> ir.Type:
    with ir.Location.unknown(element.context):
        return ir.RankedTensorType.get(ir.RankedTensorType(type_).shape, element)
