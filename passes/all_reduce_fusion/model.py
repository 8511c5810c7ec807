"""The model of bucketing: items, calls, copies, and plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

MARGINS = (0.5, 0.25, -0.05)
"""Margins by which the kernel that holds a call should end after it, as shares of the call, widest first."""
_LAST = 8
"""The slack of a call is at most the remaining kernel time divided by this."""


@dataclass(frozen=True, slots=True)
class FusionItem:
    """One collective to place.

    Attributes:
      ready: seconds; its operands have been computed.
      needed: seconds; its result is read.
      size: bytes of its payload.
      after: the last earlier item it depends on, as an index; -1 for none.
      free: it depends on nothing of its class, nothing of its class depends on it, and its result is read at the very
        end.
      members: how many collectives it stands for.
      reading: seconds of the ops that read only its result; they may run during later calls.
    """

    ready: float
    needed: float
    size: int
    after: int = -1
    free: bool = False
    members: int = 1
    reading: float = 0.0


@dataclass(frozen=True)
class Costs:
    """The costs of calls and copies.

    Attributes:
      call: seconds of calls by their bytes.
      copy_in: seconds to copy a byte into the buffer of a call with several members.
      copy_out: seconds to copy it out again.
      ends: ascending times at which the kernels end to which calls can be held; without any, calls run back to back.
      margin: how much later than a call its holding kernel should end, as a share of the call.
      one_by_one: results are read one after another, as for gathers; others are read when all calls have ended.
    """

    call: Callable[[Array], Array]
    copy_in: float = 0.0
    copy_out: float = 0.0
    ends: tuple[float, ...] = ()
    margin: float = MARGINS[-1]
    one_by_one: bool = False

    @property
    def copy_behind_wait(self) -> float:
        """Seconds to copy a byte after compute has waited for calls that are needed earlier."""
        return self.copy_out if self.one_by_one else 0.0

    @cached_property
    def grid(self) -> Array:
        """``ends`` as an array."""
        import numpy as np
        return np.array(self.ends)

    def spare(self, end: Array, took: Array) -> Array:
        """Seconds between the end of calls and of the kernels that hold them; less if compute is about to end.

        Args:
          end: seconds at which calls end.
          took: seconds they took.

        Returns:
          Seconds.
        """
        import numpy as np
        if not self.ends:
            return took * 0.0
        left = (self.ends[-1] - end) / _LAST
        return np.clip(left, MARGINS[-1] * took, np.maximum(self.margin, MARGINS[-1]) * took)

    def spare_of_one(self, end: float, took: float) -> float:
        """``spare`` for a single call."""
        import numpy as np
        return float(self.spare(np.array([end]), np.array([took]))[0])

    def over(self, end: Array, took: Array, delay: Array) -> Array:
        """When the next call may start: at the end of the first kernel that does not end long before this one.

        Args:
          end: seconds at which calls end.
          took: seconds they took.
          delay: seconds by which copies have delayed kernels.

        Returns:
          Seconds, no less than ``end``.
        """
        import numpy as np
        if not self.ends:
            return end
        places = np.searchsorted(self.grid, end - delay + self.spare(end - delay, took) - 1e-12)
        released = self.grid[np.minimum(places, len(self.ends) - 1)] + delay
        return np.where(places < len(self.ends), np.maximum(end, released), end)


@dataclass(frozen=True)
class Limits:
    """The user's settings.

    Attributes:
      bucket_bytes: most bytes of a bucket with several members; None for no limit.
      max_buckets: most buckets; None for no limit. Dependences may force more.
    """

    bucket_bytes: int | None = None
    max_buckets: int | None = None


@dataclass(frozen=True)
class FusionPlan:
    """Buckets and their times.

    Attributes:
      buckets: the item indices of each bucket, in the order the calls run.
      exposed: seconds that calls and copies add to the step.
      busy: total seconds of the calls.
      ends: when each bucket's call ends, in seconds.
    """

    buckets: tuple[tuple[int, ...], ...]
    exposed: float
    busy: float
    ends: tuple[float, ...] = ()
