"""Micro-batches that are left out of a sum: ``where(ok, a + x, a)`` is the sum ``a + where(ok, x, 0)``."""

from __future__ import annotations

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.types import element_type
from hlorewrite.ir.view import View, defining_op, users
from hlorewrite.passes.common.splats import splat_constant

_SELECT, _ADD, _LOOP = "stablehlo.select", "stablehlo.add", "stablehlo.while"


def write_skips_as_sums(view: View, editor: Editor) -> int:
    """Writes each choice between an accumulator and the accumulator with an addend as a sum.

    ``select(p, a + x, a) = a + select(p, x, 0)``, and so with the branches exchanged. Equal for numbers except for the
    sign of a zero; what ``x`` holds where ``p`` is false does not matter on either side. Done for accumulators of loops
    and for additions that nothing else reads.

    Args:
      view: the module.
      editor: the editor of the module.

    Returns:
      How many there were.
    """
    found = [(select, position, add) for select in view.ops(_SELECT) for position in (1, 2)
             if (add := _adds_to(select, position)) is not None]
    for select, position, add in found:
        _write_sum(select, position, add, editor)
    return len(found)


def _adds_to(select: ir.Operation, position: int) -> ir.Operation | None:
    """The addition in a branch of a select whose other branch is the accumulator; None when there is none."""
    kept, add = select.operands[3 - position], defining_op(select.operands[position])
    if add is None or add.name != _ADD or len(users(add.results[0])) != 1:
        return None
    if not isinstance(kept.owner, ir.Block) or kept.owner.owner.name != _LOOP:
        return None
    element = element_type(kept)
    if not isinstance(element, ir.FloatType | ir.IntegerType) or str(element) == "i1":
        return None
    return add if sum(operand == kept for operand in add.operands) == 1 else None


def _write_sum(select: ir.Operation, position: int, add: ir.Operation, editor: Editor) -> None:
    kept = select.operands[3 - position]
    addend = next(operand for operand in add.operands if operand != kept)
    with editor.context:
        element = element_type(kept)
        number = ir.FloatAttr.get(element, 0.0, ir.Location.unknown()) if isinstance(element, ir.FloatType) else 0
    zero = splat_constant(editor, number, addend.type, select)
    branches = [addend, zero] if position == 1 else [zero, addend]
    chosen = editor.create(_SELECT, [select.operands[0], *branches], [addend.type], location=select.location,
                           before=select)
    total = editor.create(_ADD, [kept, chosen.results[0]], [kept.type], location=select.location, before=select)
    editor.replace(select.results[0], total.results[0])
    editor.erase(select)
    editor.erase(add)
