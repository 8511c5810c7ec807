"""The module inside a serialized ``jax.export``, read and replaced without importing jax.

The file is a FlatBuffer whose root table ``Exported`` keeps the portable artifact in field 13 (vtable offset 30, stable
since serialization version 1). FlatBuffers address by relative offsets, so a longer module is appended and the field
pointed at it; everything else (shardings, trees, kept arguments, vjp) stays byte for byte.
"""

import struct

_MODULE_SLOT = 30
_VERSION_SLOT = 4
_NAME_SLOT = 6
_VECTOR_SLOTS = (10, 14, 18, 20, 22, 24, 26, 28)
_MLIR_MAGIC = b"ML\xefR"
_KNOWN_VERSIONS = range(1, 64)


def _field(data: bytes, slot: int) -> int | None:
    """Absolute position of a root-table field; None when absent or the bytes are not FlatBuffer."""
    try:
        table = struct.unpack_from("<I", data, 0)[0]
        vtable = table - struct.unpack_from("<i", data, table)[0]
        size = struct.unpack_from("<H", data, vtable)[0]
        if vtable < 0 or slot + 2 > size:
            return None
        offset = struct.unpack_from("<H", data, vtable + slot)[0]
    except struct.error:
        return None
    return table + offset if offset else None


def _module_vector(data: bytes) -> tuple[int, int, int] | None:
    """(field position, start of the module's bytes, length) or None."""
    field = _field(data, _MODULE_SLOT)
    version = _field(data, _VERSION_SLOT)
    if field is None or version is None:
        return None
    try:
        if struct.unpack_from("<H", data, version)[0] not in _KNOWN_VERSIONS:
            return None
        vector = field + struct.unpack_from("<I", data, field)[0]
        length = struct.unpack_from("<I", data, vector)[0]
    except struct.error:
        return None
    start = vector + 4
    if start + length > len(data) or not data.startswith(_MLIR_MAGIC, start) or not _is_whole(data):
        return None
    return field, start, length


def _is_whole(data: bytes) -> bool:
    """Whether what the root table points at is inside the file; the name, written first, is at its very end."""
    for slot in (_NAME_SLOT, *_VECTOR_SLOTS):
        field = _field(data, slot)
        if field is None:
            continue
        try:
            start = field + struct.unpack_from("<I", data, field)[0]
            length = struct.unpack_from("<I", data, start)[0]
        except struct.error:
            return False
        if start + 4 + (length + 1 if slot == _NAME_SLOT else 4 * length) > len(data):
            return False
    return True


def is_export(data: bytes) -> bool:
    """Whether bytes are a serialized ``jax.export`` that contains a module."""
    return _module_vector(data) is not None


def module_bytes(data: bytes) -> bytes:
    """The portable artifact inside a serialized export.

    Args:
      data: what ``Exported.serialize()`` returned.

    Returns:
      The bytes of ``Exported.mlir_module_serialized``.

    Raises:
      ValueError: the bytes are not a serialized export.
    """
    vector = _module_vector(data)
    if vector is None:
        raise ValueError("not a serialized jax.export")
    _, start, length = vector
    return data[start:start + length]


def with_module(data: bytes, module: bytes) -> bytes:
    """The same export with another module.

    Args:
      data: a serialized export.
      module: the new portable artifact; its signature must be the old one's.

    Returns:
      A serialized export that ``jax.export.deserialize`` reads.

    Raises:
      ValueError: the bytes are not a serialized export.
    """
    vector = _module_vector(data)
    if vector is None:
        raise ValueError("not a serialized jax.export")
    field, start, length = vector
    out = bytearray(data)
    if len(module) <= length:
        struct.pack_into("<I", out, start - 4, len(module))
        out[start:start + length] = module.ljust(length, b"\0")
        return bytes(out)
    out[start:start + length] = bytes(length)  # the old module is dead: leave nothing of it
    out += bytes(-len(out) % 16 + 12)          # the bytes after the 4-byte length stay 16-aligned
    struct.pack_into("<I", out, field, len(out) - field)
    return bytes(out) + struct.pack("<I", len(module)) + module
