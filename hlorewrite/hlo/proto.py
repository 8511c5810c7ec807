"""Protocol buffers: numbers of variable length, and the one field of an ``HloProto`` that is read, the module."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Reads a number of variable length.

    Args:
      data: the message.
      at: where the number begins.

    Returns:
      The number, and where it ends.

    Raises:
      IndexError: the data end before it does.

    Example:
      >>> varint(bytes([0xAC, 0x02]), 0)
      (300, 2)
    """
    value = shift = 0
    while True:  # Ends: each round reads a byte; at the end of the data an IndexError is raised.
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at


def hlo_module_of(proto: bytes) -> bytes | None:
    """The ``hlo_module`` field (number 1, which XLA writes first) of a serialized ``HloProto``.

    Args:
      proto: the message, or as much as has been written of it.

    Returns:
      A serialized ``HloModuleProto``; None if the bytes end before the field does.

    Example:
      >>> hlo_module_of(bytes([0x0A, 3]) + b"abc"), hlo_module_of(bytes([0x0A, 3]) + b"ab")
      (b'abc', None)
    """
    try:
        length, begin = varint(proto, 1)
    except IndexError:
        return None
    return proto[begin:begin + length] if begin + length <= len(proto) else None
