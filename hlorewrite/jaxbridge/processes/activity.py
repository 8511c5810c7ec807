"""The present activity of a process, from the stack of its main thread: no cost in the step itself."""

import os
import sys
import threading
import time
from dataclasses import dataclass
from types import FrameType

import jax

from hlorewrite.jaxbridge.processes.blocked import BlockedClock
from hlorewrite.jaxbridge.processes.call_site import arguments, called_method, called_object
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
