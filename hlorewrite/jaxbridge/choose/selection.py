"""Selects the module that a step is compiled from: the best rewritten candidate, or the user's own."""

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from hlorewrite.analysis.varying_ops import DEVICE_IDS
from hlorewrite.errors import InputError
from hlorewrite.ir import Module, View
from hlorewrite.jaxbridge.baseline.baseline_run import BaselineRun, NotCompared
from hlorewrite.jaxbridge.baseline.comparison import XlaComparison, compared, unbeaten
from hlorewrite.jaxbridge.baseline.judge import NOISE, too_large
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured, compiled
from hlorewrite.jaxbridge.choose.candidates import (
    NEAR,
    CandidateMaker,
    ChosenModule,
    Contest,
    RewriteCandidate,
    devices_in_words,
)
from hlorewrite.jaxbridge.choose.fastest import FastestWay
from hlorewrite.jaxbridge.choose.miscompile_policy import MiscompilePolicy
from hlorewrite.jaxbridge.choose.speculate import Compilations, done
from hlorewrite.jaxbridge.step.variants import Variant, has_carry_outside

# ---- compares candidates with XLA alone and with each other where bytes decide

# Compiles nothing.


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


# ---- the selection


Compared = tuple[RewriteCandidate, XlaComparison]


@dataclass
class Selection:
    """Selects among candidates: compiles those that send least first, and only as many as may be the best.

    Args:
      comparator: decides which is better.
      compilations: XLA's compilations of candidates.
      smaller: applies another variant of the passes to a candidate's source.
      refused: XLA's refusals; the selection adds to them.
    """

    comparator: Comparator
    compilations: Compilations
    smaller: Callable[[RewriteCandidate, Variant], RewriteCandidate]
    refused: list[InputError] = field(default_factory=list)
    first: Compared | None = field(default=None, init=False)
    """The first candidate that was compared, for the report when none is kept."""

    def best(self, candidates: Sequence[RewriteCandidate], variants: Sequence[Variant], *,
             near: bool = True) -> Compared | None:
        """The candidate to keep.

        Args:
          candidates: the candidates to compare; those that send least come first.
          variants: what to try, in this order, on the source of a candidate that takes too much memory.
          near: compare only candidates that send about as little as the first one.

        Returns:
          The best with its comparison; None when XLA alone does as well as all of them.
        """
        best: Compared | None = None
        ordered = sorted(candidates, key=lambda c: c.order)
        for candidate in ordered:
            if best is not None and best[1].rewritten.wire <= candidate.order[0]:
                break
            if near and candidate.order[0] > ordered[0].order[0] * NEAR:
                break
            try:
                one = self._within_memory(candidate, variants)
            except InputError as error:
                self.refused += [] if error in self.refused else [error]
                continue
            self.first = self.first or one
            if one[1].kept and (best is None or one[1].rewritten.wire < best[1].rewritten.wire):
                best = one
        return best

    def _within_memory(self, candidate: RewriteCandidate, variants: Sequence[Variant]) -> Compared:
        """Compares a candidate with XLA alone; if it takes too much memory, the first variant of it that does not.

        A candidate that sends more than XLA alone because it is fused is tried after its unfused variant.
        """
        if variants and not self.compilations.was_asked(candidate) and \
                candidate.sends_more_fused(self.comparator.alone.wire):
            unfused = self.smaller(candidate, variants[0])
            if unfused.made.report.changed and (first := self._compared(unfused)).kept:
                return unfused, first
        comparison, given = self._compared(candidate), candidate
        for variant in variants:
            if not self.comparator.costs_too_much(comparison.rewritten):
                break
            smaller = self.smaller(given, variant)
            if smaller.made.report.changed and smaller.made.bytecode != candidate.made.bytecode:
                candidate, comparison = smaller, self._compared(smaller)
        return candidate, comparison

    def _compared(self, candidate: RewriteCandidate) -> XlaComparison:
        return self.comparator.compared(candidate, self.compilations.measured(candidate))


def chosen_module(contest: Contest) -> ChosenModule:
    """Makes the candidates and compares them with XLA alone.

    Args:
      contest: the module and the terms.

    Returns:
      The candidate that is best, with its comparison; the first one where no pass changed any.

    Raises:
      NotCompared: XLA refuses the user's own module, or all rewritten ones.
      InputError: no partitioner's program can be used.
      HlorewriteError: a pass failed.
    """
    with ExitStack() as cleanup:
        dumping = contest.exposing and contest.alone is None
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="hlorewrite-"))) if dumping else None
        pool = ThreadPoolExecutor(max_workers=2)
        cleanup.callback(pool.shutdown, cancel_futures=True)
        policy = MiscompilePolicy(contest)
        maker, compilations = CandidateMaker(contest), Compilations(contest, policy.flags, pool)
        baseline = begun_baseline(contest, policy, compilations, folder)
        if contest.cluster:
            return FastestWay(contest, policy, maker, compilations).run(baseline)
        return _LeastBytes(contest, policy, maker, compilations).run(baseline, folder is not None)


def begun_baseline(contest: Contest, policy: MiscompilePolicy, compilations: Compilations,
                   folder: Path | None) -> BaselineRun:
    """Begins XLA's compilation of the module in another thread, without the pass if it likely miscompiles the module.

    The partitioner runs before that pass.
    """
    known = contest.alone
    if known is not None:
        return BaselineRun(done(lambda: known))
    return compilations.baseline(policy.likely_flags() if folder is not None else {}, folder)


@dataclass(frozen=True)
class _LeastBytes:
    """One choice where no time is known: the candidate that sends least and takes no more memory."""

    contest: Contest
    policy: MiscompilePolicy
    maker: CandidateMaker
    compilations: Compilations

    def run(self, baseline: BaselineRun, dumping: bool) -> ChosenModule:
        program = baseline.program() if dumping else None
        candidates = self.maker.make(program)
        self._begin(candidates, baseline)
        if self.contest.exposing and not baseline.confirms(program):
            candidates = self.maker.make(baseline.program())
        changed = [c for c in candidates if c.made.report.changed]
        if not changed:
            return _chosen(candidates[0], None)
        source = candidates[0].source
        if baseline.flags and not self.policy.miscompiles(source):
            baseline = self.policy.unprotected(baseline, self.compilations, View(source))
        measured = baseline.measured()
        began = any(candidate in self.compilations.ahead for candidate in changed)
        if not baseline.flags and began and self.policy.beaten_wrongly([c.order for c in changed], measured, source):
            self.policy.begin_protected(self.compilations)
        return self._best(changed, measured, source, baseline.flags)

    def _begin(self, candidates: list[RewriteCandidate], baseline: BaselineRun) -> None:
        """Begins the compilation that is asked for next; a module that is not partitioned has one candidate, which
        begins now."""
        first = candidates[0]
        if not self.contest.exposing:
            if first.made.report.changed:
                self.compilations.begin(first)
        elif not baseline.future.done():
            self.compilations.begin_likely(candidates, self.maker)

    def _selection(self, alone: Measured) -> Selection:
        contest = self.contest
        comparator = Comparator(alone, devices_in_words(contest.place, contest.devices), contest.budget)
        return Selection(comparator, self.compilations, self.maker.smaller, self.maker.refused)

    def _best(self, candidates: list[RewriteCandidate], alone: Measured, partitioned: Module,
              flags: Flags) -> ChosenModule:
        """The best candidate. Costlier ones are tried when the cheaper ones are not better."""
        selection, rest = self._selection(alone), self.contest.variants[1:]
        if self._cannot_be_better(candidates, alone) and (flags or not self.policy.miscompiles(partitioned)):
            first = min(candidates, key=lambda c: c.order)
            return _chosen(first, unbeaten(alone, selection.comparator.devices, first.partitioner))
        unlimited = [variant for variant in rest if variant.memory is None]
        best = selection.best(candidates, unlimited)
        if best is None and not flags and self.policy.miscompiles(partitioned):
            # XLA alone sends less because it computes something else, so compare its program without that pass.
            selection, flags = self._selection(self.policy.protected_alone(self.compilations)), self.policy.flags
            best = selection.best(candidates, unlimited)
        if best is None:
            others = self.maker.without_the_rule(candidates)
            best, candidates = selection.best(others, unlimited), [*candidates, *others]
        best = best or selection.best(candidates, rest, near=False)
        if best is not None:
            return _chosen(best[0], self._confirmed(*best, flags) if self.contest.keep == "compiled" else best[1])
        if selection.first is None:
            raise NotCompared(f"XLA refuses the rewritten module: {self.maker.refused[-1].what}")
        return _chosen(*selection.first)

    def _cannot_be_better(self, candidates: list[RewriteCandidate], alone: Measured) -> bool:
        """Whether no candidate needs compiling, with or without the rule for carries."""
        return self.compilations.bounded and all(not has_carry_outside(c.variant) and cannot_be_better(c, alone)
                                                 for c in candidates)

    def _confirmed(self, candidate: RewriteCandidate, comparison: XlaComparison, flags: Flags) -> XlaComparison:
        """The comparison after both are compiled to the end."""
        contest = self.contest
        alone, ours = (compiled(module, contest.place, given) for module, given in (
            (contest.module, flags), (candidate.made.module, self.policy.flags)))
        return compared(alone, ours, comparison.devices, comparison.partitioner, budget=contest.budget, with_code=True,
                        or_equal=candidate.keeps_communication)


def _chosen(candidate: RewriteCandidate, comparison: XlaComparison | None) -> ChosenModule:
    return ChosenModule(candidate.source, candidate.made, candidate.variant, comparison)
