"""What stands around the reading of a binary module: the command line bounds its memory there, a library does not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass


@dataclass
class ReadGuard:
    """Called with the name and the size of a binary file before it is read.

    Attributes:
      around: makes what stands around the reading; nothing by default.
    """

    around: Callable[[str, int], AbstractContextManager[None]] = lambda name, size: nullcontext()


READ_GUARD = ReadGuard()
"""One for the process: a damaged size in a file makes C++ code fill the memory of all of it."""
