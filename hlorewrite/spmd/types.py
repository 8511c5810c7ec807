"""Sizes of tensor types."""

from __future__ import annotations

import math
import re

from hlorewrite.ir.binding import ir

_WIDTH = re.compile(r"[a-z]+(\d+)")  # f8E4M3FN, ui4, bf16


def is_static_tensor(kind: ir.Type) -> bool:
    """Whether a type is a ranked tensor of static shape."""
    return isinstance(kind, ir.RankedTensorType) and kind.has_static_shape


def element_count(kind: ir.Type) -> int:
    """How many elements a static tensor has; 0 for anything else."""
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        return 0
    count = 1
    for size in kind.shape:
        count *= size
    return count


def element_bytes(element: ir.Type) -> float:
    """Bytes an element takes in memory: ``i1`` one, ``i4`` a half, ``complex<f32>`` eight."""
    name = str(element)
    if name.startswith("complex<"):
        return 2 * element_bytes(ir.ComplexType(element).element_type)
    width = _WIDTH.match(name)
    if width is None:
        return 4
    return 1 if name == "i1" else int(width.group(1)) / 8


def tensor_bytes(kind: ir.Type) -> int:
    """Bytes of a static tensor; 0 for tokens and dynamic shapes.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     tensor_bytes(ir.Type.parse("tensor<4x8xbf16>"))
      64
    """
    count = element_count(kind)
    return math.ceil(count * element_bytes(kind.element_type)) if count and isinstance(kind, ir.RankedTensorType) else 0


def is_number(kind: ir.Type) -> bool:
    """Whether a tensor's elements are integers, real or complex numbers (not quantized ones)."""
    return isinstance(kind, ir.RankedTensorType) and isinstance(
        kind.element_type, (ir.IntegerType, ir.FloatType, ir.ComplexType))


def is_floating(element: ir.Type) -> bool:
    """Whether an element type is a real or complex floating type."""
    name = str(element)
    return name.startswith(("f", "bf", "tf", "complex"))
