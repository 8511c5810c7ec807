"""Sizes of tensor types."""

from __future__ import annotations

from hlorewrite.ir.binding import ir

_BITS = {"i1": 8, "f8": 8, "bf16": 16, "f16": 16, "f32": 32, "f64": 64, "tf32": 32}


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
    if name in _BITS:
        return _BITS[name] / 8
    if name.startswith("f8"):
        return 1
    digits = name.lstrip("uifsE")
    return int(digits) / 8 if digits.isdigit() else 4


def tensor_bytes(kind: ir.Type) -> int:
    """Bytes of a static tensor; 0 for tokens and dynamic shapes.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     tensor_bytes(ir.Type.parse("tensor<4x8xbf16>"))
      64
    """
    count = element_count(kind)
    return int(count * element_bytes(kind.element_type)) if count and isinstance(kind, ir.RankedTensorType) else 0


def is_floating(element: ir.Type) -> bool:
    """Whether an element type is a real or complex floating type."""
    name = str(element)
    return name.startswith(("f", "bf", "tf", "complex"))
