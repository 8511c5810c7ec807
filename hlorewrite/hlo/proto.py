"""Serialized HLO: the one field of an ``HloProto`` that is read, the module."""

from __future__ import annotations


def hlo_module_of(proto: bytes) -> bytes | None:
    """The ``hlo_module`` field (number 1, which XLA writes first) of a serialized ``HloProto``.

    Args:
      proto: the message, or as much as has been written of it.

    Returns:
      A serialized ``HloModuleProto``; None where the bytes end before the field does.

    Example:
      >>> hlo_module_of(bytes([0x0A, 3]) + b"abc"), hlo_module_of(bytes([0x0A, 3]) + b"ab")
      (b'abc', None)
    """
    length, position, shift = 0, 1, 0
    # Ends: each round reads a byte.
    while position < len(proto):
        byte = proto[position]
        length |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return proto[position:position + length] if position + length <= len(proto) else None
    return None
