"""Sizes of tensor types."""

import math
from collections.abc import Sequence

from hlorewrite.ir.binding import ir

_TF32_WIDTH = 19  # stored in four bytes


def element_type(value: ir.Value) -> ir.Type:
    """The element type of a tensor value; the type itself for anything else."""
    type_ = value.type
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


def tensor_type(shape: Sequence[int], element: ir.Type) -> ir.RankedTensorType:
    """A tensor type without encoding.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     tensor_type([4, 8], ir.BF16Type.get())
      RankedTensorType(tensor<4x8xbf16>)
    """
    with ir.Location.unknown(element.context):
        return ir.RankedTensorType.get(list(shape), element)


def with_dimension(type_: ir.Type, dimension: int, size: int) -> ir.RankedTensorType:
    """A tensor type with another size of one dimension, without encoding.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     with_dimension(ir.Type.parse("tensor<4x8xbf16>"), 0, 2)
      RankedTensorType(tensor<2x8xbf16>)
    """
    tensor = ir.RankedTensorType(type_)
    shape = list(tensor.shape)
    shape[dimension] = size
    return tensor_type(shape, tensor.element_type)


def integer_range(type_: ir.Type) -> range:
    """The numbers that an element of an integer tensor type may be; empty for other types.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     [integer_range(ir.Type.parse(f"tensor<{name}>")) for name in ("i8", "ui8", "i1", "f32")]
      [range(-128, 128), range(0, 256), range(0, 2), range(0, 0)]
    """
    element = ir.RankedTensorType(type_).element_type
    if not isinstance(element, ir.IntegerType):
        return range(0)
    if element.is_unsigned or element.width == 1:
        return range(1 << element.width)
    return range(-(1 << element.width - 1), 1 << element.width - 1)


def holds_number(type_: ir.Type, number: int) -> bool:
    """Whether a tensor type can hold an integer; False for types that are not integers."""
    return number in integer_range(type_)


def is_static_tensor(type_: ir.Type) -> bool:
    """Whether a type is a ranked tensor of static shape."""
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape


def element_count(type_: ir.Type) -> int:
    """How many elements a static tensor has; 0 for anything else."""
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return 0
    count = 1
    for size in type_.shape:
        count *= size
    return count


def element_bytes(element: ir.Type) -> float:
    """Bytes an element takes in memory: ``i1`` one, ``i4`` a half, ``complex<f32>`` eight."""
    width = getattr(element, "width", None)  # of integers and floats; printing a type takes longer than all else here
    if width is None:
        return 2 * element_bytes(element.element_type) if isinstance(element, ir.ComplexType) else 4
    if width == _TF32_WIDTH:
        return 4
    return 1 if width == 1 else width / 8


def tensor_bytes(type_: ir.Type) -> int:
    """Bytes of a static tensor; 0 for tokens and dynamic shapes.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     tensor_bytes(ir.Type.parse("tensor<4x8xbf16>"))
      64
    """
    count = element_count(type_)
    if not count or not isinstance(type_, ir.RankedTensorType):
        return 0
    return math.ceil(count * element_bytes(type_.element_type))


def is_number(type_: ir.Type) -> bool:
    """Whether a tensor's elements are integers, real or complex numbers.

    Not quantized ones, nor floats of 4 and 6 bits, nor the exponents of ``f8E8M0FNU``, which have no zero.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     [is_number(ir.Type.parse(f"tensor<4x{element}>")) for element in ("f64", "i4", "f4E2M1FN", "f6E3M2FN")]
      [True, True, False, False]
    """
    if not isinstance(type_, ir.RankedTensorType) or str(type_.element_type).startswith(("f4E", "f6E", "f8E8M0")):
        return False
    return isinstance(type_.element_type, (ir.IntegerType, ir.FloatType, ir.ComplexType))


# Floats without infinities: what is too large becomes not-a-number, or the largest number.
_LARGEST_FINITE = {"f8E4M3FN": 448.0, "f8E4M3FNUZ": 240.0, "f8E5M2FNUZ": 57344.0, "f8E4M3B11FNUZ": 30.0,
                   "f8E8M0FNU": 2.0**127, "f6E2M3FN": 7.5, "f6E3M2FN": 28.0, "f4E2M1FN": 6.0}


def largest_float(element: ir.Type) -> float:
    """The largest number of a floating-point type: infinity if it has one.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     largest_float(ir.Type.parse("f32")), largest_float(ir.Type.parse("f8E4M3FN"))
      (inf, 448.0)
    """
    return _LARGEST_FINITE.get(str(element), math.inf)


def is_floating(element: ir.Type) -> bool:
    """Whether an element type is a real or complex floating-point type."""
    name = str(element)
    return name.startswith(("f", "bf", "tf", "complex"))
