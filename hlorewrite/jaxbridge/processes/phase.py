"""What a process does at a moment, from the stack of its main thread: no cost in the step itself."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass
from types import FrameType

import jax

OWN = "in its own Python code"
COMPILING = "compiling"
WAITING = "waiting for a collective or the devices"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_JAX = os.path.dirname(os.path.abspath(jax.__file__))
_LIBRARIES = (_PACKAGE, _JAX, os.path.join(os.path.dirname(_JAX), "jaxlib"),
              os.path.join(os.path.dirname(_JAX), "numpy"))
_COMPILERS = {"backend_compile", "backend_compile_and_load", "compile_or_get_cached", "optimized_lowering",
              "_cached_compilation", "_compiled"}
_WAITS = {"block_until_ready", "_value", "__array__", "fetch_value", "blocking_key_value_get", "compare", "agree",
          "wait_for_room", "_single_device_array_to_np_array_did_copy"}


@dataclass(frozen=True)
class Phase:
    """What a process does.

    Attributes:
      kind: ``OWN``, ``COMPILING`` or ``WAITING``.
      place: the user's line, ``FILE:LINE``; empty where there is none.
      since_s: for how long, seconds.
      step: how many steps it has begun.
    """

    kind: str
    place: str = ""
    since_s: float = 0.0
    step: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{f' at {self.place}' if self.place else ''} for {self.since_s:.0f} s"


class PhaseClock:
    """Looks at the main thread, and says for how long it has been doing the same kind of thing."""

    def __init__(self) -> None:
        self._main = threading.main_thread().ident or 0
        self._kind, self._step, self._since = "", 0, time.monotonic()

    def look(self, step: int) -> Phase:
        """The phase at this moment; the time of a phase begins anew with each step.

        Args:
          step: how many steps the process has begun.
        """
        frame, now = sys._current_frames().get(self._main), time.monotonic()
        kind, place = phase_of(frame)
        if (kind, step) != (self._kind, self._step):
            self._kind, self._step, self._since = kind, step, now
        return Phase(kind, place, now - self._since, step)


def phase_of(frame: FrameType | None) -> tuple[str, str]:
    """Kind and place of what a stack does.

    Args:
      frame: the innermost one; None for a thread that is gone.
    """
    kind, place, innermost = OWN, "", True
    # Ends: a stack is finite.
    while frame is not None:
        code = frame.f_code
        library = code.co_filename.startswith(_LIBRARIES)
        if library and code.co_name in _COMPILERS:
            kind = COMPILING
        elif library and kind == OWN and (code.co_name in _WAITS or (innermost and _dispatches(code.co_name))):
            kind = WAITING
        if not library and not place and not code.co_filename.startswith("<frozen"):
            place = f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
        innermost = False
        frame = frame.f_back
    return kind, place


def _dispatches(name: str) -> bool:
    """Whether a function of ours or of JAX calls compiled code, which may wait in C++."""
    return name in ("__call__", "cache_miss", "call", "reraise_with_filtered_traceback")
