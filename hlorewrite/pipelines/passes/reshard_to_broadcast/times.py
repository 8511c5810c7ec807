"""Seconds of one device's value sent to a group, by what the target has."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.ir.collectives import ALL_REDUCE, COLLECTIVE_BROADCAST, COLLECTIVE_PERMUTE
from hlorewrite.passes.legalize_for_cpu import LegalizeForCpu

Target = Literal["gpu", "cpu"]

SWITCH_SECONDS = {"gpu": 2e-5, "cpu": 0.0}
"""What a branch chosen at run time costs in addition to its ops: XLA:GPU copies the index to the host and waits for
it. An assumed figure, of the size of two launches."""


@dataclass(frozen=True)
class BroadcastTimes:
    """Times of broadcasts on a target.

    Attributes:
      times: times of collectives on the cluster.
      target: ``gpu`` has ``collective_broadcast``; ``cpu`` says it with a sum or a chain of permutes.
      legalizer: how it is said for ``cpu``.

    Example:
      >>> gpu = BroadcastTimes(CollectiveTimes("h200:1x8", 8), "gpu", LegalizeForCpu())
      >>> everyone = [range(8)]
      >>> gpu.broadcast(1 << 26, everyone) < gpu.masked_sum(1 << 26, everyone)
      True
    """

    times: CollectiveTimes
    target: Target
    legalizer: LegalizeForCpu

    def broadcast(self, payload: int, rows: Sequence[Sequence[int]]) -> float:
        """Seconds of a broadcast as the target carries it out.

        Args:
          payload: bytes of the value.
          rows: groups, the source first.

        Returns:
          Seconds.
        """
        if self.target == "gpu":
            return self.times.seconds(COLLECTIVE_BROADCAST.kind, payload, rows)
        members = max(map(len, rows))
        form = self.legalizer.form
        chain = form == "chain" or (form == "auto" and payload >= self.legalizer.chain_bytes)
        if members > 2 and not chain:
            return self.masked_sum(payload, rows)
        chunks = 1 if members <= 2 else self.legalizer.chunks
        pairs = [pair for row in rows for pair in itertools.pairwise(row)]
        step = self.times.seconds(COLLECTIVE_PERMUTE.kind, -(-payload // chunks), pairs)
        return (chunks + max(members - 2, 0)) * step

    def masked_sum(self, payload: int, rows: Sequence[Sequence[int]]) -> float:
        """Seconds of an all-reduce to which one device contributes."""
        return self.times.seconds(ALL_REDUCE.kind, payload, rows)
