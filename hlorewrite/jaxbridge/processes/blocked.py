"""Whether a main thread may be blocked in C++ until an array is ready, if its stack alone does not show that.

Arrays are waited for in C++ by methods (``array.block_until_ready()``), by NumPy, which reads arrays of one device
through the buffer protocol (``np.stack(arrays)``, ``host[:] = array``), and by whatever calls one of these in C
(``list(map(ready, arrays))``). None of them leaves a Python frame. Facts outside the stack show more: the thread stays
at one instruction, it sleeps on a lock rather than on a clock, a file or a socket, and an array is not ready.
"""

import dis
import platform
import time
import types
from pathlib import Path
from types import FrameType
from typing import Any

import jax

from hlorewrite.jaxbridge.processes.call_site import called_object
from hlorewrite.jaxbridge.xla import private

_FUTEX = {"x86_64": "202", "aarch64": "98"}
"""The number of the system call in which a thread of C++ waits for another one (Linux, ``asm/unistd.h``)."""
_MAY_WAIT = ("builtins", "functools", "itertools", "jax", "jaxlib", "nanobind", "numpy", "operator")
"""Packages whose functions written in C wait for arrays, or call functions that do."""
_FETCHES = {"input", "next", "open"}
"""Functions of ``builtins`` that wait for data rather than for arrays."""


class BlockedClock:
    """For how long a thread has been in one call of C++ that may wait for an array.

    Args:
      thread: its number, as the system counts threads; None if that is unknown.
    """

    def __init__(self, thread: int | None) -> None:
        self._thread = thread
        self._at: tuple[int, int] | None = None
        self._since_s = 0.0

    def look(self, frame: FrameType | None) -> None:
        """Looks at the thread.

        Args:
          frame: the innermost one of its stack, where that is in code that may wait for arrays; else None.
        """
        at = None if frame is None else (id(frame), frame.f_lasti)
        if at is None or not sleeps_on_lock(self._thread) or not may_wait(frame):
            self._at = None
        elif at != self._at:
            self._at, self._since_s = at, time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has been blocked; 0 if it is not blocked, or every array is ready."""
        since_s = time.monotonic() - self._since_s
        return since_s if self._at is not None and array_outstanding() else 0.0


def may_wait(frame: FrameType | None) -> bool:
    """Whether a frame is in a call of C that may wait for an array, and not for an iterator's next item, a lock or a
    sleep."""
    if frame is None or dis.opname[frame.f_code.co_code[frame.f_lasti]] in ("FOR_ITER", "SEND"):
        return False
    called = called_object(frame)
    if called is None:  # its source says too little
        return True
    return _package(called) in _MAY_WAIT and getattr(called, "__name__", "") not in _FETCHES


def _package(function: Any) -> str:
    """The package in which a function or method of C is; no code of the user's runs."""
    if isinstance(function, types.MethodType) or type(function).__name__ == "instancemethod":  # as pybind11 makes them
        function = function.__func__
    if isinstance(function, types.BuiltinFunctionType):
        owner = function.__module__ or type(function.__self__).__module__
    elif isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType | types.MethodWrapperType):
        owner = function.__objclass__.__module__
    else:
        owner = (function if type(function) is type else type(function)).__module__
    return str(owner).partition(".")[0].removeprefix("_")


def sleeps_on_lock(thread: int | None) -> bool:
    """Whether a thread sleeps on a lock, as a thread that waits in C++ does; also True if the system does not say.

    Args:
      thread: a thread of this process.

    Example:
      >>> import threading
      >>> sleeps_on_lock(threading.get_native_id())  # it runs
      False
    """
    number = _FUTEX.get(platform.machine())
    if thread is None or number is None:
        return True
    try:
        doing = Path(f"/proc/self/task/{thread}/syscall").read_text().split()
    except OSError:
        return True
    return bool(doing) and doing[0] == number


def array_outstanding() -> bool:
    """Whether a computation that this process started has not finished.

    Example:
      >>> array_outstanding()
      False
    """
    return any(map(private.is_outstanding, jax.live_arrays()))
