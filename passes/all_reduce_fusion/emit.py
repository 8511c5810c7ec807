"""Emits fused collectives: one call over flattened and concatenated values, or one with several operands.

A permute moves elements as they are and a reduction is elementwise, so ``f(concat(x, y)) = concat(f(x), f(y))``. For a
reduce-scatter, each value is first laid out as [n, size / n] with the shard of member p in row p, so row p of the
concatenation holds all shards of member p. For an all-gather, each value is one row, and row p of the result is the
contribution of member p.

StableHLO's all-reduce also takes several operands, but XLA 0.10 refuses such an op inside a manual region ("Sharding is
tuple-shaped but validation shape is not"), and XLA:GPU flattens it in any case (AllReduceContiguous).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.ir import ALL_GATHER, ALL_REDUCE, BY_OP, REDUCE_SCATTER, Editor, ir
from hlorewrite.ir.frontend import COMBINER_KEY, FRONTEND, with_frontend
from hlorewrite.ops.attributes import shape_of
from hlorewrite.passes.all_reduce_fusion.members import Member, carrier_of
from hlorewrite.passes.common.emit import add_reducer, integer_attribute
from hlorewrite.passes.common.op_writer import OpWriter


def emit_bucket(editor: Editor, members: Sequence[Member], key: str, anchor: ir.Operation, *,
                variadic: bool = False) -> ir.Operation:
    """Emits the call of a bucket before an op; the readers of the members read its results instead.

    Args:
      editor: the editor of the module.
      members: the members, in the order of their values in the call.
      key: the combiner key that keeps XLA from merging the call with others.
      anchor: the op to insert before; all operands precede it.
      variadic: give an all-reduce an operand for each value.

    Returns:
      The call. The members are left without readers.
    """
    writer = _BucketWriter(editor, members, key, anchor)
    return writer.variadic() if variadic and members[0].kind == ALL_REDUCE.kind else writer.flattened()


@dataclass(frozen=True)
class _Part:
    """One value of one member in the call: its original type, its type in the call, and the dimension that is cut or
    gathered."""

    operand: ir.Value
    result: ir.Value
    dim: int


class _BucketWriter:
    def __init__(self, editor: Editor, members: Sequence[Member], key: str, anchor: ir.Operation) -> None:
        self.editor = editor
        self.members = members
        self.first = members[0].op
        self.anchor = anchor
        self.writer = OpWriter.before(editor, anchor, self.first.location)
        self.kind = members[0].kind
        self.size = len(members[0].groups[0])
        self.attributes = {name: self.first.attributes[name] for name in self.first.attributes}
        self.attributes[FRONTEND] = with_frontend(self.first, COMBINER_KEY, key)
        self.parts = [_Part(operand, result, _cut_dimension(member.op)) for member in members
                      for operand, result in zip(member.op.operands, member.op.results, strict=True)]

    # ---- both forms

    def variadic(self) -> ir.Operation:
        """One call with an operand for each value."""
        carrier = self._carrier()
        operands = [self._to(part.operand, carrier) for part in self.parts]
        call = self._call(operands, [operand.type for operand in operands])
        for part, result in zip(self.parts, call.results, strict=True):
            self.editor.replace(part.result, self._to(result, _element(part.result)))
        return call

    def flattened(self) -> ir.Operation:
        """One call over the concatenation of all values."""
        carrier = self._carrier()
        values = [self._to(self._laid_out(part), carrier) for part in self.parts]
        widths = [shape_of(value)[-1] for value in values]
        joined = self.writer.concatenated(values, len(shape_of(values[0])) - 1)
        call = self._call([joined], [self._result_type(sum(widths), carrier)])
        start = 0
        for part, width in zip(self.parts, widths, strict=True):
            piece = self.writer.part(call.results[0], len(shape_of(call.results[0])) - 1, start, start + width)
            self.editor.replace(part.result, self._restored(self._to(piece, _element(part.result)), part))
            start += width
        return call

    def _result_type(self, width: int, carrier: str) -> ir.Type:
        if self.kind == REDUCE_SCATTER.kind:
            self.attributes["scatter_dimension"] = integer_attribute(self.editor, 0)
            return self._tensor([1, width], carrier)
        if self.kind == ALL_GATHER.kind:
            self.attributes["all_gather_dim"] = integer_attribute(self.editor, 0)
            return self._tensor([self.size, width], carrier)
        return self._tensor([width], carrier)

    def _carrier(self) -> str:
        first = self.members[0]
        carrier = carrier_of(first.reduction, frozenset(member.element for member in self.members))
        if carrier is None:
            raise ValueError("members of one bucket have no common element type")
        return carrier

    def _call(self, operands: Sequence[ir.Value], kinds: Sequence[ir.Type]) -> ir.Operation:
        reduction = self.members[0].reduction
        call = self.editor.create(self.first.name, operands, kinds, attributes=self.attributes,
                                  regions=1 if reduction else 0, location=self.first.location, before=self.anchor)
        if reduction:
            add_reducer(self.editor, call, reduction)
        return call

    # ---- values

    def _laid_out(self, part: _Part) -> ir.Value:
        """An operand as one row; for a scatter as n rows, with the shard of member p in row p."""
        shape = shape_of(part.operand)
        if self.kind == ALL_GATHER.kind:
            return self.writer.reshaped(part.operand, [1, math.prod(shape)])
        if self.kind != REDUCE_SCATTER.kind:
            return self.writer.reshaped(part.operand, [math.prod(shape)])
        split = [*shape[:part.dim], self.size, shape[part.dim] // self.size, *shape[part.dim + 1:]]
        value = self.writer.reshaped(part.operand, split)
        value = self.writer.transposed(value, [part.dim, *(d for d in range(len(split)) if d != part.dim)])
        return self.writer.reshaped(value, [self.size, math.prod(shape) // self.size])

    def _restored(self, piece: ir.Value, part: _Part) -> ir.Value:
        """A part of the call's result, in its shape in the program."""
        if self.kind == ALL_GATHER.kind:
            own = shape_of(part.operand)
            piece = self.writer.reshaped(piece, [self.size, *own])
            piece = self.writer.transposed(piece, [*range(1, part.dim + 1), 0, *range(part.dim + 1, len(own) + 1)])
        return self.writer.reshaped(piece, shape_of(part.result))

    def _to(self, value: ir.Value, element: str) -> ir.Value:
        """A value as another element type: a bitcast between integers of one width, a conversion otherwise."""
        type_ = ir.RankedTensorType(value.type)
        source = str(type_.element_type)
        if source == element:
            return value
        same_width = source.lstrip("ui").isdigit() and source.lstrip("ui") == element.lstrip("ui")
        name = "stablehlo.bitcast_convert" if same_width else "stablehlo.convert"
        return self.writer.make(name, [value], self._tensor(list(type_.shape), element))

    def _tensor(self, shape: list[int], element: str) -> ir.Type:
        with self.editor.context, ir.Location.unknown():
            return ir.RankedTensorType.get(shape, ir.Type.parse(element))


def _element(value: ir.Value) -> str:
    return str(ir.RankedTensorType(value.type).element_type)


def _cut_dimension(op: ir.Operation) -> int:
    """The dimension that a scatter cuts or a gather extends; 0 for others."""
    dimensions = BY_OP[op.name].dimensions
    return ir.IntegerAttr(op.attributes[dimensions[0]]).value if dimensions else 0
