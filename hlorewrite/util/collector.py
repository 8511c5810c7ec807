"""Python's collector of reference cycles, held back while work makes many objects without cycles."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Keeps the collector from looking for cycles; other threads make garbage that is collected later.

    With JAX loaded, one full look takes longer than rewriting a step.

    Example:
      >>> with collector_paused():
      ...     gc.isenabled()
      False
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
