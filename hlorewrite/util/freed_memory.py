"""Memory that was freed, given back to the system."""

import ctypes
import sys


def give_back_freed_memory() -> None:
    """Gives freed memory back to the system, where the C library can (glibc).

    MLIR and XLA free what a compilation took, but the C library keeps most of it in pieces that the next compilation
    does not fit into: a step of 70 billion parameters, compiled in seven ways, peaked at 1.54 GiB instead of 1.39.

    Example:
      >>> give_back_freed_memory()
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
