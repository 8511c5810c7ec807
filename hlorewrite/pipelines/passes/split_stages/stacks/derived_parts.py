"""Values that an update derives from stacks by part beyond their rows: flat vectors, and sums over rows.

A norm is written in many ways: of ``g.ravel()``, as ``vdot(g, g)``, of one vector of all gradients. Each of them is a
sum over the parts. The parts of a value are known from those of what it is made of; ``dim_factor`` says which ops keep
rows and which sum over them.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from hlorewrite.ir import Editor, element_count, ir, is_static_tensor, sdy, with_dimension
from hlorewrite.ops.attributes import PADDING, ints
from hlorewrite.ops.dims import dim_factor, repeats_whole
from hlorewrite.ops.reducers import OP_OF_KIND
from hlorewrite.ops.table import ELEMENTWISE
from hlorewrite.passes.common.shard_index import splat_number

_CONCATENATE, _RESHAPE = "stablehlo.concatenate", "stablehlo.reshape"


Part = ir.Value | None
"""A part of a value; None for zeros."""


class RowEdges(Protocol):
    """How the rows of a value are cut."""

    @property
    def edges(self) -> tuple[int, ...]:
        """The first row of each part, and the number of rows."""
        ...

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The rows (first, end) of each part."""
        ...


class WritesParts(Protocol):
    """Rewrites a step by part."""

    editor: Editor
    parts_of: dict[ir.Value, list[Part]]
    whole_of: dict[ir.Value, ir.Value]

    def cut(self, value: ir.Value) -> RowEdges | None:
        """How a value is cut; None when it stays whole."""

    def derive(self, value: ir.Value, parts: list[Part], edges: tuple[int, ...]) -> None:
        """Records that a value exists by part without being a stack."""

    def whole(self, value: ir.Value) -> ir.Value:
        """A value as one."""
        ...

    def repeated(self, value: ir.Value, rows: Sequence[tuple[int, int]]) -> list[Part]:
        """Parts of a value that is alike in all of its rows."""
        ...

    def there(self, part: Part, like: ir.Value, rows: tuple[int, int]) -> ir.Value:
        """A part as a value: if it is None, zeros are made."""
        ...

    def end(self) -> ir.Operation:
        """The op before which everything is written."""
        ...

    def copied(self, op: ir.Operation, mapping: Mapping[ir.Value, ir.Value], rows: tuple[int, int],
               keeps_rows: bool = True) -> ir.Value:
        """A copy of an op for some rows."""
        ...


def joins_tensors(op: ir.Operation) -> bool:
    """Whether an op joins tensors along their rows: then each may be on another mesh."""
    return op.name == _CONCATENATE and ir.IntegerAttr(op.attributes["dimension"]).value == 0 and \
        len(op.operands) > 1 and any((element_count(each.type) or 0) > 1 for each in op.operands)


def write_derived(writer: WritesParts, op: ir.Operation) -> bool:
    """Writes an op of the update for each part of its operands.

    Args:
      writer: what writes the step.
      op: an op whose result is not cut as a stack.

    Returns:
      Whether it was written; otherwise it needs its operands whole.
    """
    if joins_tensors(op):
        _joined(writer, op)
        return True
    position = next((place for place, each in enumerate(op.operands) if each in writer.parts_of), None)
    if position is None or len(op.results) != 1:
        return False
    if op.name == _RESHAPE:
        return _reshaped(writer, op)
    return op.name in ROW_BY_ROW and _by_factor(writer, op, position)


def _joined(writer: WritesParts, op: ir.Operation) -> None:
    """The operands of a concatenation one after the other, those that are cut by part."""
    parts: list[ir.Value | None] = []
    edges = [0]
    for operand in op.operands:
        cut = writer.cut(operand) if operand in writer.parts_of else None
        first = edges[-1]
        parts += [writer.whole(operand)] if cut is None else [
            writer.there(part, operand, rows) for part, rows in zip(writer.parts_of[operand], cut.parts, strict=True)]
        edges += [first + rows_of(operand)] if cut is None else [first + edge for edge in cut.edges[1:]]
    writer.derive(op.results[0], parts, tuple(edges))


def _reshaped(writer: WritesParts, op: ir.Operation) -> bool:
    """A reshape whose parts are blocks of the result's rows."""
    source, result = op.operands[0], op.results[0]
    cut = writer.cut(source)
    if cut is None or not rows_of(result):
        return False
    before, after = (math.prod(ir.RankedTensorType(value.type).shape[1:]) for value in (source, result))
    if any(edge * before % after for edge in cut.edges):
        return False
    edges = tuple(edge * before // after for edge in cut.edges)
    parts: list[ir.Value | None] = []
    for part, rows, (low, high) in zip(writer.parts_of[source], cut.parts, pairwise(edges), strict=True):
        parts.append(writer.editor.create(_RESHAPE, [writer.there(part, source, rows)],
                                          [with_dimension(result.type, 0, high - low)], location=op.location,
                                          before=writer.end()).results[0])
    writer.derive(result, parts, edges)
    return True


def _by_factor(writer: WritesParts, op: ir.Operation, position: int) -> bool:
    """An op that keeps the rows of its operands, or sums over them."""
    cut, factor = writer.cut(op.operands[position]), dim_factor(op, 0, position)
    if cut is None or isinstance(factor, str) or factor.result not in (0, None):
        return False
    together = [value for value, d in zip(op.operands, factor.operands, strict=True) if d is not None]
    if any(d not in (0, None) for d in factor.operands) or not all(_is_cut_so(writer, value, cut.edges)
                                                                   for value in together):
        return False
    if any(value in together for value, d in zip(op.operands, factor.operands, strict=True) if d is None):
        return False
    made: list[ir.Value] = []
    given = {value: writer.parts_of[value] if value in writer.parts_of else writer.repeated(value, cut.parts)
             for value in together}
    for number, rows in enumerate(cut.parts):
        mapping = {value: writer.there(given[value][number], value, rows) for value in together}
        made.append(writer.copied(op, mapping, rows, keeps_rows=factor.result == 0))
    if factor.result == 0:
        writer.derive(op.results[0], list(made), cut.edges)
    else:
        writer.whole_of[op.results[0]] = _sum(writer, op, made)
    return True


def _is_cut_so(writer: WritesParts, value: ir.Value, edges: Sequence[int]) -> bool:
    """Whether a value is there by part, or costs nothing to make so."""
    cut = writer.cut(value) if value in writer.parts_of else None
    if cut is not None:
        return cut.edges == tuple(edges)
    made = value.owner
    return not isinstance(made, ir.Block) and repeats_whole(made.operation, 0)


def _sum(writer: WritesParts, op: ir.Operation, parts: Sequence[ir.Value]) -> ir.Value:
    total = parts[0]
    for part in parts[1:]:
        total = writer.editor.create(OP_OF_KIND["sum"], [total, part], [part.type], location=op.location,
                                     before=writer.end()).results[0]
    return total


# ---- ops that compute each row of their results, along the first dimension, from the same row of their operands


_DOT = "stablehlo.dot_general"
ROW_BY_ROW = ELEMENTWISE | {_DOT, *(f"stablehlo.{name}" for name in (
    "transpose", "reshape", "broadcast_in_dim", "reduce", "slice"))}
"""Ops that are copied for parts of a stack; a matrix product only if both operands are stacks."""


def rows_of(value: ir.Value) -> int:
    """The size of a value's first dimension; 0 for scalars and dynamic shapes."""
    if not is_static_tensor(value.type):
        return 0
    shape = ir.RankedTensorType(value.type).shape
    return shape[0] if len(shape) else 0


def corresponding(op: ir.Operation) -> list[list[ir.Value]]:
    """Groups of operands and results whose rows correspond; none if the op mixes rows.

    Row i of each result in a group depends on row i of the operands in it, and on whole operands that are in none.

    Args:
      op: any op.
    """
    if op.name == "stablehlo.optimization_barrier":
        pairs = zip(op.operands, op.results, strict=True)
        return [] if len(op.attributes) else [[a, b] for a, b in pairs if rows_of(a)]
    if len(op.results) != 1 or not rows_of(op.results[0]):
        return []
    if op.name == "sdy.sharding_constraint":
        return [[op.operands[0], op.results[0]]] if _uncut(op) else []
    factor = dim_factor(op, 0) if op.name in ROW_BY_ROW else ""
    if isinstance(factor, str) or any(factor.operands) or (op.name == _DOT and None in factor.operands):
        return []
    return [[*(operand for operand, d in zip(op.operands, factor.operands, strict=True) if d == 0), op.results[0]]]


def _uncut(op: ir.Operation) -> bool:
    dimensions = sdy.TensorShardingAttr(op.attributes["sharding"]).dimension_shardings
    return not list(sdy.DimensionShardingAttr(dimensions[0]).axes)


def row_range(op: ir.Operation) -> tuple[int, int] | None:
    """The rows (first, end) that a slice takes, one after the other; None for any other op."""
    if op.name != "stablehlo.slice" or not rows_of(op.operands[0]) or ints(op, "strides")[0] != 1:
        return None
    return ints(op, "start_indices")[0], ints(op, "limit_indices")[0]


def padded_range(op: ir.Operation) -> tuple[int, int] | None:
    """The rows of its result that a pad's operand fills, the others being zero; None for any other op."""
    if op.name != "stablehlo.pad" or not rows_of(op.operands[0]) or splat_number(op.operands[1]) != 0:
        return None
    low, high, inside = (ints(op, name) for name in PADDING)
    if any(low[1:]) or any(high[1:]) or any(inside) or low[0] < 0 or high[0] < 0:
        return None
    return low[0], low[0] + rows_of(op.operands[0])
