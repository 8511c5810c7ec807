"""Waiting for late ranks: the time that an exposed collective takes in addition to its own.

Ranks reach a collective at different times, and it ends after the last. Each is late by an exponential law of mean
``arrival_s`` (``data/collectives.toml``); of n ranks the last is late by H_n = 1 + 1/2 + ... + 1/n of it on average.
"""

import math
from dataclasses import dataclass

from hlorewrite.cost.collectives.kinds import default_constants
from hlorewrite.errors import UsageError


@dataclass(frozen=True, slots=True)
class ArrivalWait:
    """Seconds that a call waits for its last rank.

    Args:
      mean: the average.
      low: 10 of 100 calls wait less.
      high: 10 of 100 calls wait longer.
    """

    mean: float
    low: float
    high: float


def waiting_for_ranks(ranks: int, late_s: float | None = None) -> ArrivalWait:
    """How long an exposed collective waits for its last rank.

    Args:
      ranks: ranks of a group.
      late_s: how late a rank is on average; None is the shipped constant.

    Raises:
      UsageError: there is no rank, or a rank is early on average.

    Example:
      >>> waiting_for_ranks(1).mean < waiting_for_ranks(8).mean < waiting_for_ranks(64).mean
      True
      >>> 2e-3 < waiting_for_ranks(64).low < waiting_for_ranks(64).mean < waiting_for_ranks(64).high
      True
    """
    late = default_constants()["arrival_s"] if late_s is None else late_s
    if ranks < 1 or late < 0:
        raise UsageError(f"{ranks} ranks, {late} s late", hint="use at least one rank, and a lateness of 0 or more")
    if ranks == 1:
        return ArrivalWait(0.0, 0.0, 0.0)
    harmonic = math.log(ranks) + 0.5772156649 + 0.5 / ranks if ranks > 64 else sum(1 / k for k in range(1, ranks + 1))
    low, high = (-late * math.log(-math.expm1(math.log(share) / ranks)) for share in (0.1, 0.9))
    return ArrivalWait(late * harmonic, low, high)
