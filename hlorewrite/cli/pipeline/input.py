"""Input files of ``hlorewrite pipeline``."""

from __future__ import annotations


def read(path: str) -> str:
    """The text of a file."""
    from hlorewrite.errors import InputError

    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"cannot read: {why}", location=path, hint="check the path") from None
