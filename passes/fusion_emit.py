"""Writing fused collectives: one call with several operands, or one over flattened and concatenated values.

StableHLO's all-reduce and all-gather take several operands. Its reduce-scatter and permute take one, so values are
flattened: a permute moves elements as they are, and a reduction is elementwise, so that
``f(concat(x, y)) = concat(f(x), f(y))``. For a reduce-scatter each value is first laid out as [n, size / n], row p
holding what member p gets; then the rows of the concatenation hold it too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.passes.fusion_members import FRONTEND, Member, carrier_of, with_combiner_key
from hlorewrite.spmd.reducers import OP_OF_KIND

_FLATTENED = ("reduce-scatter", "collective-permute")


def emit_bucket(editor: Editor, members: Sequence[Member], key: str, anchor: ir.Operation) -> ir.Operation:
    """Puts the one call of a bucket in front of an op; the readers of its members read it instead.

    Args:
      editor: the editor of the module.
      members: the members, in the order their values travel.
      key: the combiner key that keeps XLA from merging the call with others.
      anchor: where to put it; all operands stand before it.

    Returns:
      The call. The members are left without readers.
    """
    writer = _Writer(editor, members, key, anchor)
    return writer.flattened() if members[0].kind in _FLATTENED else writer.variadic()


class _Writer:
    def __init__(self, editor: Editor, members: Sequence[Member], key: str, anchor: ir.Operation) -> None:
        self.editor = editor
        self.members = members
        self.first = members[0].op
        self.anchor = anchor
        self.attributes = {name: self.first.attributes[name] for name in self.first.attributes}
        self.attributes[FRONTEND] = with_combiner_key(self.first, key)

    # ---- both forms

    def variadic(self) -> ir.Operation:
        """One call with an operand for each value."""
        carrier = self._carrier() if self.members[0].reduction else None
        operands, kinds, sources = [], [], []
        for member in self.members:
            for operand, result in zip(member.op.operands, member.op.results, strict=True):
                operands.append(self._to(operand, carrier))
                kinds.append(self._typed(result.type, carrier))
                sources.append(result)
        call = self._call(operands, kinds, self._carrier() if carrier else "")
        for source, result in zip(sources, call.results, strict=True):
            self.editor.replace(source, self._to(result, str(ir.RankedTensorType(source.type).element_type)))
        return call

    def flattened(self) -> ir.Operation:
        """One call over the concatenation of all values."""
        carrier = self._carrier()
        scatter = self.members[0].kind == "reduce-scatter"
        rows = len(self.members[0].groups[0]) if scatter else 1
        parts = [self._to(self._rows(member.op, rows), carrier) for member in self.members]
        widths = [ir.RankedTensorType(part.type).shape[1] for part in parts]
        whole = self._tensor([rows, sum(widths)], carrier)
        joined = self._create("stablehlo.concatenate", parts, whole, dimension=self._integer(1))
        if scatter:
            self.attributes["scatter_dimension"] = self._integer(0)
        call = self._call([joined], [self._tensor([1, sum(widths)], carrier)], carrier)
        start = 0
        for member, width in zip(self.members, widths, strict=True):
            self.editor.replace(member.op.results[0], self._piece(call.results[0], start, width, carrier, member))
            start += width
        return call

    def _carrier(self) -> str:
        first = self.members[0]
        found = carrier_of(first.reduction, frozenset(member.element for member in self.members))
        if found is None:
            raise ValueError("members of one bucket have no common element type")
        return found

    def _call(self, operands: Sequence[ir.Value], kinds: Sequence[ir.Type], element: str) -> ir.Operation:
        reduction = self.members[0].reduction
        call = self.editor.create(self.first.name, operands, kinds, attributes=self.attributes,
                                  regions=1 if reduction else 0, location=self.first.location, before=self.anchor)
        if reduction:
            add_reducer(self.editor, call, reduction, element)
        return call

    # ---- values

    def _rows(self, op: ir.Operation, rows: int) -> ir.Value:
        """An operand as [rows, elements / rows]; of a scatter, row p is what member p gets."""
        value = op.operands[0]
        shape = list(ir.RankedTensorType(value.type).shape)
        element = str(ir.RankedTensorType(value.type).element_type)
        if op.name == "stablehlo.reduce_scatter":
            dim = ir.IntegerAttr(op.attributes["scatter_dimension"]).value
            split = [*shape[:dim], rows, shape[dim] // rows, *shape[dim + 1:]]
            value = self._reshape(value, split, element)
            order = [dim, *(d for d in range(len(split)) if d != dim)]
            value = self._transpose(value, [split[d] for d in order], order, element)
        return self._reshape(value, [rows, math.prod(shape) // rows], element)

    def _piece(self, joined: ir.Value, start: int, width: int, carrier: str, member: Member) -> ir.Value:
        """One member's part of the call's result; a shard lies in it in the order of its own dimensions."""
        with self.editor.context:
            bounds = {name: ir.DenseI64ArrayAttr.get(numbers) for name, numbers in
                      (("start_indices", [0, start]), ("limit_indices", [1, start + width]), ("strides", [1, 1]))}
        part = self._create("stablehlo.slice", [joined], self._tensor([1, width], carrier), **bounds)
        kind = ir.RankedTensorType(member.op.results[0].type)
        return self._reshape(self._to(part, member.element), list(kind.shape), member.element)

    def _to(self, value: ir.Value, element: str | None) -> ir.Value:
        """A value as another element type: bits kept between integers of one width, converted otherwise."""
        kind = ir.RankedTensorType(value.type)
        source = str(kind.element_type)
        if element is None or source == element:
            return value
        same_width = source.lstrip("ui").isdigit() and source.lstrip("ui") == element.lstrip("ui")
        name = "stablehlo.bitcast_convert" if same_width else "stablehlo.convert"
        return self._create(name, [value], self._tensor(list(kind.shape), element))

    def _typed(self, kind: ir.Type, element: str | None) -> ir.Type:
        return kind if element is None else self._tensor(list(ir.RankedTensorType(kind).shape), element)

    def _reshape(self, value: ir.Value, shape: list[int], element: str) -> ir.Value:
        if list(ir.RankedTensorType(value.type).shape) == shape:
            return value
        return self._create("stablehlo.reshape", [value], self._tensor(shape, element))

    def _transpose(self, value: ir.Value, shape: list[int], order: list[int], element: str) -> ir.Value:
        if order == sorted(order):
            return value
        with self.editor.context:
            permutation = ir.DenseI64ArrayAttr.get(order)
        return self._create("stablehlo.transpose", [value], self._tensor(shape, element), permutation=permutation)

    def _tensor(self, shape: list[int], element: str) -> ir.Type:
        with self.editor.context, ir.Location.unknown():
            return ir.RankedTensorType.get(shape, ir.Type.parse(element))

    def _integer(self, value: int) -> ir.Attribute:
        with self.editor.context:
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)

    def _create(self, name: str, operands: Sequence[ir.Value], kind: ir.Type, **attributes: ir.Attribute) -> ir.Value:
        return self.editor.create(name, operands, [kind], attributes=attributes, location=self.first.location,
                                  before=self.anchor).results[0]


def add_reducer(editor: Editor, op: ir.Operation, kind: str, element: str) -> None:
    """Fills the empty region of a reducing collective.

    Args:
      editor: the editor of the module.
      op: the collective.
      kind: the kind of reduction.
      element: the element type as text.
    """
    with editor.context, op.location:
        scalar = ir.RankedTensorType.get([], ir.Type.parse(element))
        block = op.regions[0].blocks.append(scalar, scalar, arg_locs=[op.location, op.location])
    combined = editor.create(OP_OF_KIND[kind], list(block.arguments), [scalar], location=op.location, at_end=block)
    editor.create("stablehlo.return", [combined.results[0]], [], location=op.location, at_end=block)
