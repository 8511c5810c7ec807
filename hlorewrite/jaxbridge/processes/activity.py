"""The present activity of a process, from the stack of its main thread: no cost in the step itself."""

import ast
import builtins
import dis
import inspect
import itertools
import linecache
import os
import platform
import sys
import threading
import time
import types
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import jax

from hlorewrite.jaxbridge.xla import private

OWN = "in its own Python code"
COMPILING = "compiling"
WAITING = "waiting for a collective or the devices"
AGREEING = "waiting for the decision of other processes"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_JAX = os.path.dirname(os.path.abspath(jax.__file__))
_LIBRARIES = (_PACKAGE, _JAX, os.path.join(os.path.dirname(_JAX), "jaxlib"),
              os.path.join(os.path.dirname(_JAX), "numpy"))
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_PACKAGES = os.sep + "site-packages" + os.sep
_REWRITES = {"optimized_lowering", "before_compilation", "lower_step", "_compiled"}
"""Functions of this package that rewrite or compile; JAX's are in ``xla/private.py``."""
_AGREES = {"settle"}
_WAITS = {"fetch_value", "wait_for_room", "__array__"}


@dataclass(frozen=True)
class Phase:
    """What a process does.

    Attributes:
      kind: ``OWN``, ``COMPILING``, ``AGREEING`` or ``WAITING``.
      place: the user's line, ``FILE:LINE``; empty if there is none.
      since_s: how long it has done so, in seconds.
      step: how many steps it has begun.
    """

    kind: str
    place: str = ""
    since_s: float = 0.0
    step: int = 0

    @property
    def words(self) -> str:
        """Kind and place."""
        return f"{self.kind} at {self.place}" if self.place else self.kind

    def __str__(self) -> str:
        return f"{self.words} for {self.since_s:.0f} s"


class PhaseClock:
    """Looks at the main thread, and says for how long it has been doing the same kind of thing.

    Attributes:
      blocked: for how long it may have been waiting in C++, where its stack shows the user's code only.
    """

    def __init__(self) -> None:
        self._main = threading.main_thread().ident or 0
        self.blocked = BlockedClock(threading.main_thread().native_id)
        self._kind, self._step, self._since = "", 0, time.monotonic()

    def look(self, step: int) -> Phase:
        """The phase at this moment; the time of a phase begins again with each step.

        Args:
          step: how many steps the process has begun.
        """
        frame, now = sys._current_frames().get(self._main), time.monotonic()
        kind, place = phase_of(frame)
        self.blocked.look(frame if kind == OWN and frame and not _is_standard(frame.f_code.co_filename) else None)
        if (kind, step) != (self._kind, self._step):
            self._kind, self._step, self._since = kind, step, now
        return Phase(kind, place, now - self._since, step)


def phase_of(frame: FrameType | None) -> tuple[str, str]:
    """The kind and the place of a stack's activity.

    Args:
      frame: the innermost one; None for a thread that is gone.
    """
    kind, place = OWN, ""
    if frame is not None and _waits_in_call(frame):
        kind = WAITING
    innermost = True
    # Ends: a stack is finite.
    while frame is not None:
        code = frame.f_code
        library = code.co_filename.startswith(_LIBRARIES)
        if library:
            kind = _inside(code.co_name, kind, innermost)
        if not library and not place and not _is_standard(code.co_filename):
            place = f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
        innermost = False
        frame = frame.f_back
    return kind, place


def _waits_in_call(frame: FrameType) -> bool:
    """Whether a frame calls compiled code, or waits for an array that its source names; C++ adds no frame."""
    return (private.is_jitted(called_object(frame)) or called_method(frame) in private.WAITING_FUNCTIONS
            or any(map(private.is_outstanding, arguments(frame))))


def _is_standard(file: str) -> bool:
    """Whether a file is of Python's own library, so that its lines say nothing to the user."""
    return file.startswith("<frozen") or (file.startswith(_STANDARD) and _PACKAGES not in file)


def _inside(name: str, kind: str, innermost: bool) -> str:
    """The activity of a stack, given a library function in it and the activity of its inner frames."""
    if kind == AGREEING or name in _AGREES:
        return AGREEING
    if name in _REWRITES or name in private.COMPILING_FUNCTIONS:
        return COMPILING
    waits = name in _WAITS or name in private.WAITING_FUNCTIONS or (innermost and name in private.CALLING_FUNCTIONS)
    return WAITING if waits and kind == OWN else kind


# ---- whether a main thread may be blocked in C++ until an array is ready, if its stack alone does not show that

# Arrays are waited for in C++ by methods (``array.block_until_ready()``), by NumPy, which reads arrays of one device
# through the buffer protocol (``np.stack(arrays)``, ``host[:] = array``), and by whatever calls one of these in C
# (``list(map(ready, arrays))``). None of them leaves a Python frame. Facts outside the stack show more: the thread
# stays at one instruction, it sleeps on a lock rather than on a clock, a file or a socket, and an array is not ready.


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


# ---- the object that a Python frame is calling: a call of C++ leaves no frame, but its name is in the source


def called_object(frame: FrameType) -> Any | None:
    """The object that a frame's present instruction calls, if that is a name or an attribute of one.

    Reads names and attributes without running any code of the user's.

    Args:
      frame: a frame, of any thread.

    Returns:
      The object; None if the instruction is not a call, or its source is not there.

    Example:
      >>> import sys
      >>> called_object(sys._getframe()) is called_object  # what this line is calling at that moment
      True
    """
    call = _call_at(frame)
    return None if call is None else _value(call.func, frame)


def called_method(frame: FrameType) -> str:
    """The name of the method that a frame's present instruction calls, whatever its object is; empty for none."""
    call = _call_at(frame)
    return call.func.attr if call is not None and isinstance(call.func, ast.Attribute) else ""


def arguments(frame: FrameType) -> list[Any]:
    """Arguments of a frame's present call that the source names: names, or attributes of one."""
    call = _call_at(frame)
    if call is None:
        return []
    given = [*call.args, *(each.value for each in call.keywords)]
    return [_value(each, frame) for each in given if isinstance(each, ast.Name | ast.Attribute)]


def _call_at(frame: FrameType) -> ast.Call | None:
    """The call expression at a frame's present instruction."""
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if positions is None or None in positions:
        return None
    first, last, begin, end = (int(number or 0) for number in positions)
    lines = [linecache.getline(frame.f_code.co_filename, number).encode() for number in range(first, last + 1)]
    if not all(lines):
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    try:
        made = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):  # the file has changed since it was loaded
        return None
    return made if isinstance(made, ast.Call) else None


def _value(name: ast.expr, frame: FrameType) -> Any | None:
    """The object that a name or an attribute refers to; properties and descriptors are not run."""
    if isinstance(name, ast.Name):
        for scope in (frame.f_locals, frame.f_globals, vars(builtins)):
            if name.id in scope:
                return scope[name.id]
        return None
    if not isinstance(name, ast.Attribute):
        return None
    owner = _value(name.value, frame)
    return None if owner is None else inspect.getattr_static(owner, name.attr, None)
