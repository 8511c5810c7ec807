"""How many programs with collectives may be in flight on CPU.

On CPU a device that waits in a collective holds a thread of XLA's pool until the others arrive, and the pool has as
many threads as the process has cores or devices, whichever is more. When all of them wait in collectives of different
programs, none is left to run the devices they wait for, and everything stands still. So a program is launched only
when there are threads for all devices of all programs in flight:

* Among programs within this process that are stuck, each has a device that has not begun. With k devices each, they
  hold at most sum(k - 1) threads, so sum(k) <= threads leaves one for the program that such a device waits for.
* A program over several processes may hold all its k threads here while it waits for another process. Then one more
  thread is kept free, or the program runs alone.

On GPU a waiting collective holds a stream, not a thread, and there is no limit.
"""

import functools
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import jax


@dataclass(frozen=True)
class Hold:
    """Threads that a program may hold while it waits.

    Attributes:
      threads: devices of this process that participate; 0 for a program that never waits.
      spans: whether other processes participate.
    """

    threads: int = 0
    spans: bool = False


@dataclass
class InFlight:
    """The programs with collectives that have not been seen to end.

    Args:
      threads: of XLA's pool.
    """

    threads: int
    _held: deque[tuple[Any, Hold]] = field(default_factory=deque)

    def wait_for_room(self, hold: Hold) -> None:
        """Waits until a program may be launched."""
        held = self._held
        # Ends: each round takes a program out.
        while held and not self.fits(hold):
            with suppress(jax.errors.JaxRuntimeError):  # the error reaches what waits for its results
                held.popleft()[0].block_until_ready()
            # Ends: each round takes a program out.
            while held and held[0][0].is_ready():
                held.popleft()

    def fits(self, hold: Hold) -> bool:
        """Whether there are threads for one more program."""
        needed = hold.threads + sum(each.threads for _, each in self._held)
        spans = hold.spans or any(each.spans for _, each in self._held)
        return needed + spans <= self.threads

    def add(self, token: Any, hold: Hold) -> None:
        """Notes a program; its token, an array, is ready when it has run."""
        self._held.append((token, hold))


@functools.cache
def in_flight_here() -> InFlight:
    """The programs in flight in this process: all drivers share XLA's pool, and so this object."""
    return InFlight(pool_threads(os.environ, jax.local_device_count()))


def pool_threads(environment: Mapping[str, str], devices: int) -> int:
    """Threads of XLA's pool on CPU: PJRT_NPROC, NPROC or the cores this process may use, but at least one per device.

    Example:
      >>> pool_threads({"PJRT_NPROC": "48"}, 4)
      48
    """
    for name in ("PJRT_NPROC", "NPROC"):
        if environment.get(name, "").isdecimal():
            return max(int(environment[name]), devices)
    return max(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, devices)
