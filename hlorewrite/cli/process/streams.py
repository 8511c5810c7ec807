"""Standard streams that a shell closed, and names that are not UTF-8."""

import io
import os
import sys
from typing import TextIO, cast


def complete_streams() -> None:
    """Opens standard streams that are closed, and makes them print any file name.

    A closed standard output becomes one that cannot be written, so that printing fails instead of being lost, and no
    file that is opened later takes its number. Bytes of file names that are not text are shown as escapes.
    """
    if sys.stdin is None:
        sys.stdin = _opened(0, os.O_RDONLY, "r")
    if sys.stdout is None:
        sys.stdout = _opened(1, os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _opened(2, os.O_WRONLY, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Discards what is still buffered for standard output, so that closing it does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _opened(number: int, flags: int, mode: str) -> TextIO:
    null = os.open(os.devnull, flags)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    return cast(TextIO, open(number, mode, encoding="utf-8", closefd=False))
