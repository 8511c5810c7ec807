"""Compares candidates with XLA alone and with each other where bytes decide. Compiles nothing."""

from dataclasses import dataclass

from hlorewrite.analysis.varying_ops import DEVICE_IDS
from hlorewrite.ir.view import View
from hlorewrite.jaxbridge.baseline.comparison import XlaComparison, compared
from hlorewrite.jaxbridge.baseline.judge import NOISE, too_large
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.choose.candidates import RewriteCandidate


@dataclass(frozen=True)
class Comparator:
    """Compares candidates with XLA alone, and with each other.

    Attributes:
      alone: the user's own module under XLA alone.
      devices: the devices that all are compiled for, in words.
      budget: bytes of temporaries that the user allows; None without a budget.
    """

    alone: Measured
    devices: str
    budget: int | None = None

    def compared(self, candidate: RewriteCandidate, made: Measured) -> XlaComparison:
        """Compares a compiled candidate with XLA alone."""
        return compared(self.alone, made, self.devices, candidate.partitioner, budget=self.budget,
                        or_equal=candidate.keeps_communication)

    def costs_too_much(self, made: Measured) -> bool:
        """Whether a candidate takes too much memory, so a smaller variant is needed."""
        return bool(too_large(self.alone, made, self.budget))


def cannot_be_better(candidate: RewriteCandidate, alone: Measured) -> bool:
    """Whether XLA cannot make a candidate better than XLA alone, in bytes or in calls.

    Where XLA alone makes a single call, no candidate makes fewer. The module's bytes do not change: XLA halves an
    all-reduce only where each device takes its slice of the result, by its number, and code motion is switched off for
    candidates. A variant of the passes that takes less memory moves less, so it sends no less either.

    Args:
      candidate: the rewritten module, with what it sends.
      alone: what XLA alone makes of the step.
    """
    wire, calls = candidate.order
    payloads = sum(each.executed_bytes for each in candidate.made.report.after)
    return (alone.trips_known and alone.calls == 1 and calls > 0 and not candidate.keeps_communication
            and wire >= alone.wire * (1 - NOISE) and payloads <= alone.bytes * (1 + NOISE)
            and not View(candidate.made.module).ops(*DEVICE_IDS))
