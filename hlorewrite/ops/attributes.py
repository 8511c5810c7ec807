"""Typed access to an op's attributes and to the shapes of its operands and results.

Everything comes from jaxlib's bindings. Nothing is read from printed text.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hlorewrite.ir.binding import ir, stablehlo

Shape = tuple[int, ...]
Ints = Callable[[str], Sequence[int]]
"""Reads an attribute of whole numbers by its name; a single number becomes a list of one."""
PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")
SLICED = ("start_indices", "limit_indices", "strides")


class DotDims(NamedTuple):
    """The dimensions of both operands of a ``dot_general``; each pair in a list belongs together.

    Attributes:
      batch: (lhs, rhs); they come first in the result.
      summed: (lhs, rhs); contracted.
      free: (lhs, rhs); in this order after the batch in the result.
    """

    batch: tuple[tuple[int, int], ...]
    summed: tuple[tuple[int, int], ...]
    free: tuple[tuple[int, ...], tuple[int, ...]]


def shape_of(value: ir.Value) -> Shape:
    """The shape of a tensor."""
    return tuple(ir.RankedTensorType(value.type).shape)


def ints(op: ir.Operation, name: str) -> list[int]:
    """The numbers of an attribute such as ``array<i64: ...>``, or the single number of ``0 : i64``.

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


def dot_algorithm(op: ir.Operation) -> tuple[str, int] | None:
    """The type in which a named algorithm of a ``dot_general`` multiplies, and how many such products make up one."""
    if "algorithm" not in op.attributes:
        return None
    named = stablehlo.DotAlgorithm(op.attributes["algorithm"])
    return str(named.lhs_precision_type), named.num_primitive_operations


def is_precise(op: ir.Operation) -> bool:
    """Whether the precision of an operand of a product or convolution is high or highest."""
    name = "precision_config"
    return name in op.attributes and any(stablehlo.PrecisionAttr(each).value != "DEFAULT"
                                         for each in ir.ArrayAttr(op.attributes[name]))


def gather_numbers(op: ir.Operation) -> stablehlo.GatherDimensionNumbers:
    """The dimension numbers of a ``gather``."""
    return stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])


def scatter_numbers(op: ir.Operation) -> stablehlo.ScatterDimensionNumbers:
    """The dimension numbers of a ``scatter``."""
    return stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])


def convolution_numbers(op: ir.Operation) -> stablehlo.ConvDimensionNumbers:
    """The dimension numbers of a ``convolution``."""
    return stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])


# ---- constants: their attribute, the number they are filled with, and their text where jaxlib gives no attribute


_FEW = 4
"""How many elements of a constant are printed to see whether they are one number."""


def constant_attribute(op: ir.Operation) -> ir.DenseElementsAttr | None:
    """The elements of a ``stablehlo.constant``; None for other ops and for complex ones (jaxlib cannot read those)."""
    if op.name != "stablehlo.constant":
        return None
    element = ir.RankedTensorType(op.results[0].type).element_type
    if isinstance(element, ir.ComplexType):
        return None
    attribute = op.attributes["value"]
    return attribute if isinstance(attribute, ir.DenseElementsAttr) else None


def constant_text(op: ir.Operation) -> str:
    """All attributes and the type of a constant as text, equal for equal constants, complex ones among them.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> body = parse("%c = stablehlo.constant dense<(1.0,2.0)> : tensor<4xcomplex<f32>>").mlir.body
      >>> constant_text(body.operations[0].operation)
      'stablehlo.constant dense<(1.000000e+00,2.000000e+00)> : tensor<4xcomplex<f32>>'
    """
    return _text(op, None)


def _text(op: ir.Operation, most_elements: int | None) -> str:
    """The text of a constant; one of more elements is left out unless all are one number."""
    alone = op.clone().operation  # by itself: printing it in its place would number the whole function
    text = str(alone.get_asm(use_local_scope=True, large_elements_limit=most_elements)).strip().partition(" = ")[2]
    alone.erase()
    return text


def is_splat(op: ir.Operation) -> bool:
    """Whether an op is a constant whose elements are all the same number, complex or not."""
    if op.name != "stablehlo.constant":
        return False
    attribute = constant_attribute(op)
    return attribute.is_splat if attribute is not None else "dense<(" in _text(op, _FEW)


def splat_number(op: ir.Operation) -> float | int | bool | None:
    """The number a constant is filled with; None when it contains different ones or is not a constant.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> body = parse("%c = stablehlo.constant dense<2> : tensor<4xi32>").mlir.body
      >>> splat_number(body.operations[0].operation)
      2
    """
    attribute = constant_attribute(op)
    if attribute is None or not attribute.is_splat:
        return None
    splat = attribute.get_splat_value()
    return splat.value if isinstance(splat, (ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr)) else None


def is_complex_zero(op: ir.Operation) -> bool:
    """Whether an op is a complex constant of zeros."""
    return op.name == "stablehlo.constant" and "dense<(0.000000e+00,0.000000e+00)>" in _text(op, _FEW)
