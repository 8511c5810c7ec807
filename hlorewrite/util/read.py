"""Reads small files that others wrote: only regular files, and no more bytes than such a file can sensibly have."""

import csv
import json
import math
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlorewrite.errors import InputError

MOST_TEXT_BYTES = 4 << 20
"""The most bytes of a file that people write: rules, topologies, calibrations."""
_MOST_DIGITS = 300
"""The most digits of a whole number that floats can hold: computing with a larger one overflows."""
_LONGEST_FIELD = (1 << 31) - 1
MOST_TRACE_BYTES = 1 << 30
"""The most bytes of one file of a trace."""


def read_regular(path: str | Path, most_bytes: int = MOST_TEXT_BYTES, *, what: str = "file") -> bytes:
    """The content of a regular file. A pipe or device is not opened for waiting, and nothing is read from it.

    Args:
      path: the file; a symbolic link is followed.
      most_bytes: how large it may be.
      what: what it should be, for messages.

    Raises:
      InputError: it is not a regular file, or too large.
      OSError: it is missing or cannot be read.

    Example:
      >>> read_regular("/dev/zero", what="rule file")
      Traceback (most recent call last):
      hlorewrite.errors.InputError: /dev/zero: is not a regular file; name a rule file
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise InputError("is a directory", location=str(path), hint=f"name a {what} in it")
        if not stat.S_ISREG(mode):
            raise InputError("is not a regular file", location=str(path), hint=f"name a {what}")
        with open(handle, "rb", closefd=False) as file:
            content = file.read(most_bytes + 1)
    finally:
        os.close(handle)
    if len(content) > most_bytes:
        raise InputError(f"is larger than {most_bytes >> 20} MiB", location=str(path), hint=f"name a {what}")
    return content


def read_text(path: str, errors: str = "strict") -> str:
    """The text of a regular file of up to ``MOST_TRACE_BYTES``, its lines ended by ``\\n``.

    Args:
      path: the file.
      errors: what to do with bytes that are not UTF-8, as ``bytes.decode`` takes it.

    Raises:
      InputError: it cannot be read, or is not text.
    """
    try:
        return read_regular(path, MOST_TRACE_BYTES).decode("utf-8", errors).replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"cannot read: {why}", location=path, hint="check the path") from None


def read_json(text: str | bytes, *, keep: bool = False) -> Any:
    """Reads JSON that others wrote, with only finite numbers: Python's own reader also takes ``NaN``, ``Infinity`` and
    ``1e999``.

    Args:
      text: one JSON value.
      keep: continue if a number is not finite; it becomes None.

    Raises:
      ValueError: it is not JSON, or holds a number that is not finite, or that no float can hold.

    Example:
      >>> read_json('{"a": 1.5}'), read_json("[1]")
      ({'a': 1.5}, [1])
      >>> read_json('{"a": 1e999}')
      Traceback (most recent call last):
      ValueError: 1e999 is not a finite number
    """
    read = _finite_or_none if keep else _finite
    return json.loads(text, parse_constant=read, parse_float=read,
                      parse_int=_whole_or_none if keep else _whole)


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"{text[:20]}... is a number of {len(text)} digits")
    return int(text)


def _whole_or_none(text: str) -> int | None:
    return int(text) if len(text) <= _MOST_DIGITS else None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def _finite_or_none(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


@contextmanager
def long_fields() -> Iterator[None]:
    """Lets ``csv`` read fields of any length while a block runs: names of kernels can be of any length."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


# ---- what stands around the reading of a binary module: the command line bounds its memory there, a library does not


@dataclass
class ReadGuard:
    """Called with the name and the size of a binary file before it is read.

    Attributes:
      around: makes the context of the reading; nothing by default.
    """

    around: Callable[[str, int], AbstractContextManager[None]] = lambda name, size: nullcontext()


READ_GUARD = ReadGuard()
"""One guard for the whole process: a damaged size in a file makes C++ code fill the process's memory."""
