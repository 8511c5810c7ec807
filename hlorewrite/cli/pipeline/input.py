"""Input files of ``hlorewrite pipeline`` and ``hlorewrite calibrate``."""

from __future__ import annotations


def read(path: str, errors: str = "strict") -> str:
    """The text of a regular file.

    Args:
      path: the file.
      errors: what to do with bytes that are not UTF-8, as ``bytes.decode`` takes it.
    """
    from hlorewrite.errors import InputError
    from hlorewrite.util.read import MOST_TRACE_BYTES, read_regular

    try:
        return read_regular(path, MOST_TRACE_BYTES, what="file").decode("utf-8", errors).replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"cannot read: {why}", location=path, hint="check the path") from None
