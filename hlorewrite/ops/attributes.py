"""Typed reads of what stands at an op: its attributes, and the shapes of its operands and results.

Everything comes from jaxlib's bindings. Nothing is read from printed text.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hlorewrite.ir.binding import ir, stablehlo

Shape = tuple[int, ...]
Ints = Callable[[str], Sequence[int]]
"""Reads an attribute of whole numbers by its name; of a single number, a list of one."""
PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")
SLICED = ("start_indices", "limit_indices", "strides")


class DotDims(NamedTuple):
    """The dimensions of both operands of a ``dot_general``, and each pair of a list belongs together.

    Attributes:
      batch: (lhs, rhs); they come first in the result.
      summed: (lhs, rhs); contracted.
      free: of the left operand, and of the right one; in this order after the batch in the result.
    """

    batch: tuple[tuple[int, int], ...]
    summed: tuple[tuple[int, int], ...]
    free: tuple[tuple[int, ...], tuple[int, ...]]


def shape_of(value: ir.Value) -> Shape:
    """The shape of a tensor."""
    return tuple(ir.RankedTensorType(value.type).shape)


def ints(op: ir.Operation, name: str) -> list[int]:
    """The numbers of an attribute: of ``array<i64: ...>``, or a single ``0 : i64``.

    Raises:
      KeyError: the op has no such attribute.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> op = parse("%i = stablehlo.iota dim = 1 : tensor<2x3xi32>").mlir.body.operations[0].operation
      >>> ints(op, "iota_dimension")
      [1]
    """
    attribute = op.attributes[name]
    if isinstance(attribute, ir.IntegerAttr):
        return [attribute.value]
    return list(ir.DenseI64ArrayAttr(attribute))


def integer(op: ir.Operation, name: str) -> int:
    """The number of an attribute such as ``dimension``."""
    return ir.IntegerAttr(op.attributes[name]).value


def comparison_direction(op: ir.Operation) -> str:
    """``EQ``, ``NE``, ``LT``, ``LE``, ``GT`` or ``GE`` of a ``compare``."""
    return stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value


def dot_dims(op: ir.Operation) -> DotDims:
    """The dimensions of a ``dot_general``.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> view = View(parse("func.func @f(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {"
      ...     "%c = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] :"
      ...     "(tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32> return %c : tensor<2x3x5xf32> }"))
      >>> dot_dims(view.ops("stablehlo.dot_general")[0])
      DotDims(batch=((0, 0),), summed=((2, 1),), free=((1,), (2,)))
    """
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = tuple(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    summed = tuple(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    left, right = (tuple(d for d in range(len(shape_of(operand))) if d not in [pair[side] for pair in batch + summed])
                   for side, operand in enumerate(op.operands))
    return DotDims(batch, summed, (left, right))


def gather_numbers(op: ir.Operation) -> stablehlo.GatherDimensionNumbers:
    """The dimension numbers of a ``gather``."""
    return stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])


def scatter_numbers(op: ir.Operation) -> stablehlo.ScatterDimensionNumbers:
    """The dimension numbers of a ``scatter``."""
    return stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])


def convolution_numbers(op: ir.Operation) -> stablehlo.ConvDimensionNumbers:
    """The dimension numbers of a ``convolution``."""
    return stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
