"""Writes ops at one place of a module; the types of their results follow from their operands."""

from collections.abc import Sequence

from hlorewrite.ir import Editor, ir
from hlorewrite.ir.types import element_type, tensor_type
from hlorewrite.ops.attributes import SLICED, shape_of
from hlorewrite.passes.common.emit import integer_attribute


class OpWriter:
    """Writes ops at one place, in the order in which they are asked for.

    Args:
      editor: the editor of the module.
      location: what the ops are made from.
      at: the place.
    """

    def __init__(self, editor: Editor, location: ir.Location, at: ir.InsertionPoint) -> None:
        self.editor, self.location, self.at = editor, location, at

    @classmethod
    def before(cls, editor: Editor, op: ir.Operation, location: ir.Location | None = None) -> "OpWriter":
        """A writer of ops that go before an op, and are made from it unless a location is given."""
        return cls(editor, location or op.location, ir.InsertionPoint(op))

    def make(self, name: str, operands: Sequence[ir.Value], type_: ir.Type | Sequence[int] | None = None,
             **attributes: ir.Attribute) -> ir.Value:
        """An op with one result.

        Args:
          name: full op name.
          operands: operand values.
          type_: the result's type, or a shape of the first operand's elements; by default the first operand's type.
          attributes: attributes by name.
        """
        made = operands[0].type if type_ is None else type_
        if not isinstance(made, ir.Type):
            made = tensor_type(made, element_type(operands[0]))
        return self.editor.create(name, operands, [made], attributes=attributes, location=self.location,
                                  at=self.at).results[0]

    def reshaped(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """A value in another shape; the value itself if that is its shape."""
        if list(shape_of(value)) == list(shape):
            return value
        return self.make("stablehlo.reshape", [value], shape)

    def transposed(self, value: ir.Value, order: Sequence[int]) -> ir.Value:
        """A value whose dimension ``k`` is dimension ``order[k]`` of another; that value if the order is the same."""
        if list(order) == sorted(order):
            return value
        return self.make("stablehlo.transpose", [value], [shape_of(value)[d] for d in order],
                         permutation=self.numbers(order))

    def sliced(self, value: ir.Value, bounds: Sequence[tuple[int, int, int]]) -> ir.Value:
        """A part of a value by (start, limit, stride) of every dimension; the value itself if that is all of it."""
        if all(each == (0, full, 1) for each, full in zip(bounds, shape_of(value), strict=True)):
            return value
        shape = [-(-(limit - start) // stride) for start, limit, stride in bounds]
        return self.make("stablehlo.slice", [value], shape, **{
            name: self.numbers([each[k] for each in bounds]) for k, name in enumerate(SLICED)})

    def part(self, value: ir.Value, dimension: int, start: int, limit: int) -> ir.Value:
        """The part of a value from ``start`` to ``limit`` along one dimension; the value itself if that is all."""
        return self.sliced(value, [(start, limit, 1) if d == dimension else (0, size, 1)
                                   for d, size in enumerate(shape_of(value))])

    def concatenated(self, values: Sequence[ir.Value], dimension: int) -> ir.Value:
        """Values joined along a dimension."""
        shape = list(shape_of(values[0]))
        shape[dimension] = sum(shape_of(value)[dimension] for value in values)
        return self.make("stablehlo.concatenate", values, shape, dimension=integer_attribute(self.editor, dimension))

    def numbers(self, numbers: Sequence[int]) -> ir.Attribute:
        """Sizes or dimensions as an attribute."""
        with self.editor.context:
            return ir.DenseI64ArrayAttr.get(list(numbers))
