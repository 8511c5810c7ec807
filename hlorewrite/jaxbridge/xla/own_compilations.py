"""Compilations that this package asks JAX for itself; ``patch_jit`` does not rewrite programs that they compile."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_THREAD = threading.local()


@contextmanager
def own_compilation() -> Iterator[None]:
    """Marks what this thread compiles in the body.

    Example:
      >>> with own_compilation():
      ...     is_own_compilation()
      True
      >>> is_own_compilation()
      False
    """
    before, _THREAD.active = is_own_compilation(), True
    try:
        yield
    finally:
        _THREAD.active = before


def is_own_compilation() -> bool:
    """Whether this thread compiles something for this package."""
    return getattr(_THREAD, "active", False)
