"""When XLA aborts this process: one last line that says who is gone.

The client of ``jax.distributed`` aborts its process (SIGABRT, from a thread of its own) as soon as the connection to
the coordination service breaks, that is, when process 0 dies. No Python signal handler runs then, as ``abort`` does not
come back to the interpreter; a C handler made with ctypes does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int)


def on_abort(sentence: Callable[[], str]) -> Any:
    """Installs a handler for SIGABRT that prints a line and ends the process with exit code 1.

    Args:
      sentence: what to say; called in the handler.

    Returns:
      What must be kept alive as long as the handler is to work; None where there are no such signals.
    """
    if os.name != "posix":
        return None

    def handle(_: int) -> None:
        os.write(2, f"hlorewrite: error: {sentence()}\n".encode())
        os._exit(1)

    library = ctypes.CDLL(None)
    library.signal.argtypes, library.signal.restype = [ctypes.c_int, _Handler], ctypes.c_void_p
    handler = _Handler(handle)
    sys.stdout.flush()
    library.signal(int(signal.SIGABRT), handler)
    return handler


def default_abort() -> None:
    """Lets SIGABRT do what it does by default."""
    with suppress(ValueError):  # only the main thread may set handlers
        signal.signal(signal.SIGABRT, signal.SIG_DFL)


def answers(address: str, timeout_s: float = 1.0) -> bool:
    """Whether a process listens at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout_s):
            return True
    except (OSError, ValueError):
        return False
