"""Selects the rewritten module that is better than XLA alone: bytes, then calls, within memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from hlorewrite.errors import InputError
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.jaxbridge.baseline.comparison import (
    NOISE,
    KeepLimits,
    XlaComparison,
    compared,
    longer_step,
    too_much_memory,
    usual_limits,
)
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured, scheduled, timed
from hlorewrite.jaxbridge.step.report import Rewritten
from hlorewrite.jaxbridge.step.variants import Variant
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.spmd.varying_ops import DEVICE_IDS

Made = TypeVar("Made")
NEAR = 1.02
"""Candidates whose bytes are this close count as equal: such ones are tried before the passes run again with less
memory, and what takes memory has to save more."""


def done(function: Callable[[], Made]) -> Future[Made]:
    """What a function returns, or that XLA refuses something, from a thread that has ended.

    In a process that has compiled other steps, XLA takes up to a quarter longer in the main thread, whose memory is
    fragmented: malloc gives a new thread memory of its own.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(function)


@dataclass
class RewriteCandidate:
    """A rewritten module.

    Attributes:
      partitioner: whose program it is made of: ``gpu``, ``cpu``; empty for manual modules.
      source: what the passes ran on.
      made: what they made of it.
      variant: which passes.
      future: what XLA makes of it; None until that is asked for.
      begun: the same from a compilation that began ahead, before the judge asks; None where there is none.
      smaller: what later variants made of the same source.
    """

    partitioner: str
    source: Module
    made: Rewritten
    variant: Variant
    future: Future[Measured] | None = None
    begun: Future[Measured] | None = None
    smaller: dict[Variant, RewriteCandidate] = field(default_factory=dict)

    @property
    def order(self) -> tuple[Fraction, int]:
        """What the rewritten module sends, by itself: bytes on the wire, then calls."""
        after = self.made.report.after
        return sum((c.wire_bytes for c in after), Fraction(0)), sum(c.trips for c in after)

    @property
    def keeps_communication(self) -> bool:
        """Whether the passes were about something else: every collective of the module is what it was."""
        return not self.made.report.exposed and self.sends_the_same

    @property
    def sends_the_same(self) -> bool:
        """Whether every collective is what it was in the source."""
        report = self.made.report
        before, after = (Counter((c.kind, c.bytes, c.trips) for c in side) for side in (report.before, report.after))
        return before == after

    def sends_more_fused(self, alone: Fraction | int) -> bool:
        """Whether the module sends more than XLA alone, and the same passes without the last ones have run too.

        The last ones fuse. XLA may still make a reduce-scatter of an all-reduce, but not of a fused one.

        Args:
          alone: what XLA alone puts on the wire, bytes.
        """
        return self.made.shorter is not None and self.order[0] > alone * (1 + NOISE)

    def measured(self, place: DeviceSet, flags: Flags) -> Measured:
        """What XLA makes of it, asked for once.

        Raises:
          InputError: XLA refuses it.
        """
        if self.future is None:
            self.future = self.begun or done(lambda: scheduled(self.made.module, place, flags)[0])
        return self.future.result()


def cannot_be_better(candidate: RewriteCandidate, alone: Measured) -> bool:
    """Whether nothing that XLA makes of a candidate is better than XLA alone, in bytes or in calls.

    Fewer calls than one are none. Bytes stay what the module says: XLA halves an all-reduce only where each device
    takes its slice of the result, by its number, and code motion is switched off for candidates. A variant of the
    passes that takes less memory moves less, so it sends no less either.

    Args:
      candidate: the rewritten module, with what it sends.
      alone: what XLA alone makes of the step.
    """
    wire, calls = candidate.order
    payloads = sum(each.executed_bytes for each in candidate.made.report.after)
    return (alone.trips_known and alone.calls == 1 and calls > 0 and not candidate.keeps_communication
            and wire >= alone.wire * (1 - NOISE) and payloads <= alone.bytes * (1 + NOISE)
            and not View(candidate.made.module).ops(*DEVICE_IDS))


@dataclass
class Judge:
    """Compares candidates with XLA alone.

    Args:
      alone: the user's own module under XLA alone.
      place: what all are compiled for.
      devices: the same in words.
      flags: what candidates are compiled with.
      rewrite: makes of a candidate what the passes of another variant do.
      refused: XLA's refusals, to which the judge adds.
      alone_flags: what XLA alone is compiled with beyond the user's flags, where it would compute something else.
      cluster: the topology by which predicted steps are compared first; empty to compare bytes first.
      budget: bytes of temporaries that the user allows; None without a budget.
    """

    alone: Measured
    place: DeviceSet
    devices: str
    flags: Flags
    rewrite: Callable[[RewriteCandidate, Variant], RewriteCandidate]
    refused: list[InputError]
    alone_flags: Flags = field(default_factory=dict)
    cluster: str = ""
    budget: int | None = None
    first: tuple[RewriteCandidate, XlaComparison] | None = field(default=None, init=False)
    """The first one that was compared, for the report when none is kept."""

    def best(self, candidates: Sequence[RewriteCandidate], variants: Sequence[Variant], *,
             near: bool = True) -> tuple[RewriteCandidate, XlaComparison] | None:
        """The candidate to keep.

        Args:
          candidates: to compare; those that send least come first.
          variants: passes that run on the source of one that takes too much memory, in this order.
          near: compare only candidates that send about as little as the first one.

        Returns:
          The best with its comparison; None when XLA alone does as well as all of them.
        """
        best: tuple[RewriteCandidate, XlaComparison] | None = None
        ordered = sorted(candidates, key=lambda c: c.order)
        for candidate in ordered:
            if best is not None and not self.cluster and best[1].rewritten.wire <= candidate.order[0]:
                break
            if near and candidate.order[0] > ordered[0].order[0] * NEAR:
                break
            try:
                one = self._within_memory(candidate, variants)
            except InputError as error:
                self.refused += [] if error in self.refused else [error]
                continue
            self.first = self.first or one
            if one[1].kept and (best is None or self._rank(one[1].rewritten) < self._rank(best[1].rewritten)):
                best = one
        return best

    def _rank(self, made: Measured) -> tuple[float, int]:
        """What of two candidates is kept, the smaller one: where a cluster is named, the shorter step."""
        step = made.step_s if self.cluster and made.step_s is not None else float("inf")
        return step, made.wire

    def _limits(self, candidate: RewriteCandidate) -> KeepLimits:
        return usual_limits(self.budget, candidate.made.memory, bool(self.cluster))

    def _within_memory(self, candidate: RewriteCandidate,
                       variants: Sequence[Variant]) -> tuple[RewriteCandidate, XlaComparison]:
        """A candidate compared with XLA alone; where it takes too much memory, or too long a step, the first variant of
        it that does not. One that sends more than XLA alone because it is fused comes after the one without fusion."""
        if variants and candidate.future is None and candidate.sends_more_fused(self.alone.wire):
            unfused = self._smaller(candidate, variants[0])
            if unfused.made.report.changed and (first := self._compared(unfused)).kept:
                return unfused, first
        comparison, given = self._compared(candidate), candidate
        for variant in variants:
            limits = self._limits(candidate)
            if not (too_much_memory(self.alone, comparison.rewritten, limits)
                    or longer_step(self.alone, comparison.rewritten, limits)):
                break
            smaller = self._smaller(given, variant)
            if smaller.made.report.changed and smaller.made.bytecode != candidate.made.bytecode:
                candidate, comparison = smaller, self._compared(smaller)
        return candidate, comparison

    def _smaller(self, given: RewriteCandidate, variant: Variant) -> RewriteCandidate:
        if variant not in given.smaller:
            given.smaller[variant] = self.rewrite(given, variant)
        return given.smaller[variant]

    def _compared(self, candidate: RewriteCandidate) -> XlaComparison:
        made = candidate.measured(self.place, self.flags)
        return compared(self.alone, timed(made, self.cluster) if self.cluster else made, self.devices,
                        candidate.partitioner, self._limits(candidate), or_equal=candidate.keeps_communication)
