"""Rows of stacks taken from where they are made: through slices, reshapes and concatenations of unrolled loops.

A scan unrolled k times takes k rows at once from a stack reshaped to ``[layers / k, k, ...]``, its remainder takes the
rows that are left, and the results are joined again. Rows are followed in row-major order, so a reshape of the leading
dimensions only renumbers them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.analysis.loops import constant_integer
from hlorewrite.ir import Editor, defining_op, element_count, holds_number, ir, with_dimension
from hlorewrite.ops.attributes import ints
from hlorewrite.ops.dims import repeats_whole
from hlorewrite.ops.table import SLICES
from hlorewrite.passes.common.emit import integer_attribute
from hlorewrite.passes.common.op_writer import OpWriter
from hlorewrite.pipelines.passes.split_stages.graph import ops_of
from hlorewrite.pipelines.passes.split_stages.stacks.derived_parts import row_range, rows_of


@dataclass(frozen=True)
class RowOrigin:
    """Rows low to high of a value."""

    value: ir.Value
    low: int
    high: int


def origins_of(value: ir.Value, low: int, high: int) -> list[RowOrigin]:
    """Where some rows of a value come from: traced back to values that are not made by just moving rows.

    Args:
      value: a value of a static shape with at least one dimension.
      low: its first row.
      high: the end of its rows.

    Returns:
      Rows of values, one after the other, each some whole rows of the value.
    """
    row = _row_elements(value)
    found = _behind(RowOrigin(value, low * row, high * row), row)
    return found or [RowOrigin(value, low, high)]


def _behind(part: RowOrigin, unit: int) -> list[RowOrigin]:
    """Where some elements of a value, in row-major order, come from, each a multiple of some; empty if they are not
    whole rows."""
    found = [each for inner in _operands_of(part) for each in (_behind(inner, unit) or [None])]
    if found and all(each is not None for each in found):
        return [each for each in found if each is not None]
    row = _row_elements(part.value)
    if part.low % row or part.high % row or (part.high - part.low) % unit:
        return []
    return [RowOrigin(part.value, part.low // row, part.high // row)]


def _operands_of(part: RowOrigin) -> list[RowOrigin]:
    """The same elements of the op's operands that hold them; none if the op does more than to move them."""
    op = defining_op(part.value)
    if op is None:
        return []
    if (taken := rows_taken(op)) is not None:
        first = taken[0] * _row_elements(op.operands[0])
        return [RowOrigin(op.operands[0], part.low + first, part.high + first)]
    if _is_written_whole(op):
        return [RowOrigin(op.operands[1], part.low, part.high)]
    if _is_reshaped(op):
        return [RowOrigin(op.operands[0], part.low, part.high)]
    found, first = list[RowOrigin](), 0
    for each in op.operands if _is_joined(op) else ():
        low, high = max(part.low - first, 0), min(part.high - first, element_count(each.type))
        if low < high:
            found.append(RowOrigin(each, low, high))
        first += element_count(each.type)
    return found


def whole_origin(value: ir.Value) -> ir.Value:
    """The value that another one equals, shape included: one that an unrolled scan stacked and takes out again."""
    if not rows_of(value):
        return value
    found = origins_of(value, 0, rows_of(value))
    return found[0].value if len(found) == 1 and found[0].value.type == value.type and \
        found[0].high - found[0].low == rows_of(value) else value


def rows_taken(op: ir.Operation) -> tuple[int, int] | None:
    """The rows (first, end) that a slice takes, all of each, one after the other; None for any other op."""
    if op.name not in SLICES or not rows_of(op.operands[0]):
        return None
    whole, part = (list(ir.RankedTensorType(value.type).shape) for value in (op.operands[0], op.results[0]))
    if whole[1:] != part[1:]:
        return None
    if op.name == "stablehlo.slice":
        return row_range(op)
    start = _number(op.operands[1])
    if start is None:
        return None
    first = min(max(start, 0), whole[0] - part[0])  # as the op clamps it
    return first, first + part[0]


def _number(value: ir.Value) -> int | None:
    """An integer computed from constants, such as the row of an unrolled iteration.

    None if an intermediate result does not fit its type, because the op then wraps.
    """
    op = defining_op(value)
    if op is None or op.name not in ("stablehlo.add", "stablehlo.subtract", "stablehlo.convert"):
        return constant_integer(value)
    numbers = [_number(each) for each in op.operands]
    known = [each for each in numbers if each is not None]
    if len(known) < len(numbers):
        return None
    made = known[0] if len(known) == 1 else known[0] + (known[1] if op.name == "stablehlo.add" else -known[1])
    return made if holds_number(value.type, made) else None


def _is_written_whole(op: ir.Operation) -> bool:
    return op.name == "stablehlo.dynamic_update_slice" and op.operands[1].type == op.results[0].type


def _is_joined(op: ir.Operation) -> bool:
    return op.name == "stablehlo.concatenate" and ir.IntegerAttr(op.attributes["dimension"]).value == 0


def _is_reshaped(op: ir.Operation) -> bool:
    """Whether an op gives the elements of its operand in their order, both with rows."""
    if op.name not in ("stablehlo.reshape", "stablehlo.broadcast_in_dim") or not rows_of(op.operands[0]) or \
            not rows_of(op.results[0]) or element_count(op.operands[0].type) != element_count(op.results[0].type):
        return False
    if op.name == "stablehlo.reshape":
        return True
    dimensions = ints(op, "broadcast_dimensions")
    return dimensions == sorted(dimensions)


def _row_elements(value: ir.Value) -> int:
    return math.prod(list(ir.RankedTensorType(value.type).shape)[1:])


def rows_from(editor: Editor, origins: Sequence[RowOrigin], type_: ir.Type, before: ir.Operation) -> ir.Value:
    """Rows of values, one after the other, in the shape of another one.

    Args:
      editor: the editor of the module.
      origins: the rows.
      type_: the type to give them, of as many elements.
      before: the op to write before.
    """
    unit = math.prod(list(ir.RankedTensorType(type_).shape)[1:])
    parts: list[ir.Value] = []
    for rows in origins:
        value = _taken(editor, rows, before)
        parts.append(_as_type(editor, value, with_dimension(type_, 0, element_count(value.type) // unit), before))
    return parts[0] if len(parts) == 1 else joined(editor, parts, type_, before)


def _taken(editor: Editor, rows: RowOrigin, before: ir.Operation) -> ir.Value:
    """Rows of a value; made again where all are alike."""
    value, made = rows.value, defining_op(rows.value)
    if made is not None and made.name == "stablehlo.broadcast_in_dim" and repeats_whole(made, 0):
        copy = editor.clone_before(made, before)
        copy.results[0].set_type(with_dimension(value.type, 0, rows.high - rows.low))
        return copy.results[0]
    return OpWriter.before(editor, before).part(value, 0, rows.low, rows.high)


def _as_type(editor: Editor, value: ir.Value, type_: ir.Type, before: ir.Operation) -> ir.Value:
    return value if value.type == type_ else OpWriter.before(editor, before).make("stablehlo.reshape", [value], type_)


def joined(editor: Editor, parts: Sequence[ir.Value], type_: ir.Type, before: ir.Operation) -> ir.Value:
    """Parts one after the other along the first dimension."""
    return OpWriter.before(editor, before).make("stablehlo.concatenate", parts, type_,
                                                dimension=integer_attribute(editor, 0))


def make_rows_direct(editor: Editor, block: ir.Block) -> None:
    """Reads rows from where they were made, and joins the pieces of a stack in one step.

    Args:
      editor: the editor of the module.
      block: the body of a loop over micro-batches.
    """
    for op in ops_of(block):
        if _is_reshaped(op) and (whole := whole_origin(op.results[0])) != op.results[0]:
            editor.replace(op.results[0], whole)
        elif (taken := rows_taken(op)) is not None:
            found = origins_of(op.results[0], 0, taken[1] - taken[0])
            if all(each.value not in (op.operands[0], op.results[0]) for each in found):
                editor.replace(op.results[0], rows_from(editor, found, op.results[0].type, op))
        elif _is_joined(op) or (op.name == "stablehlo.reshape" and _is_reshaped(op)):
            rows, type_ = _row_elements(op.results[0]), op.results[0].type
            pieces = _pieces(op.results[0], rows)
            if len(pieces) > 1 and pieces != list(op.operands):
                parts = [_as_type(editor, each, with_dimension(type_, 0, element_count(each.type) // rows), op)
                         for each in pieces]
                editor.replace(op.results[0], joined(editor, parts, type_, op))
    for op in reversed(ops_of(block)):
        if op.name in ("stablehlo.slice", "stablehlo.dynamic_slice", "stablehlo.concatenate", "stablehlo.reshape",
                       "stablehlo.broadcast_in_dim", "stablehlo.dynamic_update_slice"):
            editor.erase_if_dead(op)


def _pieces(value: ir.Value, unit: int) -> list[ir.Value]:
    """Values that make up a value, one after the other in row-major order, each with a multiple of some number of
    elements.
    """
    op = defining_op(value)
    if op is None:
        return [value]
    if _is_joined(op):
        found = [piece for part in op.operands for piece in _pieces(part, unit)]
    elif _is_written_whole(op):
        found = _pieces(op.operands[1], unit)
    elif _is_reshaped(op):
        found = _pieces(op.operands[0], unit)
    else:
        return [value]
    return found if len(found) > 1 and all(element_count(each.type) % unit == 0 for each in found) else [value]
