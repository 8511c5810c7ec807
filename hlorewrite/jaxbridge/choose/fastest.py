"""Finds the fastest way to compile a step whose cluster is known: compiles ways and compares their predicted step
times.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from hlorewrite.errors import InputError
from hlorewrite.ir import Module, View
from hlorewrite.jaxbridge.baseline.baseline_run import BaselineRun, NotCompared
from hlorewrite.jaxbridge.baseline.comparison import WayRow, XlaComparison, flags_given
from hlorewrite.jaxbridge.baseline.judge import ALONE, NOISE, STEP_NOISE, too_large, why_not
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured, compiled, scheduled, timed
from hlorewrite.jaxbridge.baseline.memory_grant import free_bytes
from hlorewrite.jaxbridge.choose import ways
from hlorewrite.jaxbridge.choose.candidates import CandidateMaker, ChosenModule, Contest, RewriteCandidate
from hlorewrite.jaxbridge.choose.miscompile_policy import MiscompilePolicy
from hlorewrite.jaxbridge.choose.speculate import Compilations, expected_wire
from hlorewrite.jaxbridge.choose.ways import Way
from hlorewrite.jaxbridge.step.variants import Variant
from hlorewrite.passes.interleave_micro_batches.interleave_micro_batches import InterleaveMicroBatches, has_pairs
from hlorewrite.passes.tokens_to_experts import TokensToExperts

# ---- the ladder: tries ways to compile a step, the most promising first, until no other way can be better


_ALONE = Way(ALONE)

Measure = Callable[[Way], "Measured | str"]
"""XLA's compilation of a way, with its times; a sentence if it is not compiled."""


@dataclass
class Ladder:
    """One search, which ends when nothing better is expected.

    Args:
      alone: XLA alone's compilation, with its times.
      measure: compiles a way.
      budget: bytes of temporaries that the user allows; None without a budget.
      users: the user's own XLA flags.
      sets: the sets of XLA options to try.
      named: whether the user names the passes, so that options alone do not replace them.
    """

    alone: Measured
    measure: Measure
    budget: int | None = None
    users: Mapping[str, object] = field(default_factory=dict)
    sets: Sequence[str] = ()
    named: bool = False
    tried: list[tuple[Way, Measured]] = field(default_factory=list, init=False)
    left: list[WayRow] = field(default_factory=list, init=False)
    _cpu: dict[str, float] = field(default_factory=dict, init=False)
    _in_vain: bool = field(default=False, init=False)
    """Whether the last profile shortened no step: the others are not tried then, but with sunk waits."""

    def run(self, in_order: Sequence[Way]) -> tuple[Way, Measured] | None:
        """Tries ways, each also guided by a profile, then published XLA flags with the best of them. Combined messages
        are tried right after the first way: they decide whether memory is worth spending.

        Args:
          in_order: the ways, in the order in which they are tried.

        Returns:
          The best; None if that is XLA alone.
        """
        for way in in_order:
            self._try(way)
            self._try_guided(way)
            if way is in_order[0] and not self.named:
                self._try_guided(_ALONE)
                self._try_flags(_ALONE, ways.COMBINED)
        both = ways.BOTH in self.sets and self._combined_leads()
        if both:
            self._try_unrolled(ways.BOTH)
        if not both or self._combined_leads():
            self._try_unrolled(ways.UNROLLED)
        return self.best

    def _try_unrolled(self, name: str) -> None:
        """Tries a published set that unrolls loops, on the best way and on XLA alone."""
        base = self._shortest_rewritten()
        if base is not None:
            self._try_flags(base, name)
        self._try_flags(_ALONE, name)

    def _combined_leads(self) -> bool:
        """Whether combined messages alone make the best step so far."""
        return self.best is not None and self.best[0].published == ways.COMBINED

    def _shortest_rewritten(self) -> Way | None:
        """The way to unroll: that of the best one, without its options; of XLA alone under published flags, the
        shortest rewritten one that fits; None if nothing is better than XLA alone."""
        best = self.best
        known = {way.name: way for way, _ in self.tried}
        if best is None or best[0].base in known:
            return known[best[0].base] if best else None
        fitting = [(made.counted_s or 0.0, way) for way, made in self.tried if way.variant is not None
                   and not way.published and not why_not(self.alone, made, self.budget)]
        return min(fitting, key=lambda one: one[0])[1] if fitting else None

    @property
    def best(self) -> tuple[Way, Measured] | None:
        """The best way so far; None for XLA alone."""
        return ways.best_way(self.alone, self.tried, self.budget)

    def rows(self) -> tuple[WayRow, ...]:
        """All ways, XLA alone first, those that were not compiled last."""
        tried = [WayRow(way.name, made, why_not(self.alone, made, self.budget, name=way.name),
                        self._cpu.get(way.name, made.cpu_s), way.flags) for way, made in self.tried]
        return (WayRow(ALONE, self.alone, "", self.alone.cpu_s), *tried, *self.left)

    def _try(self, way: Way) -> Measured | None:
        """Compiles a way and returns its figures; None if it is not worth trying or cannot be compiled."""
        best = self.best
        fitted = any(not too_large(self.alone, made, self.budget) for _, made in self.tried)
        why = way.worth_trying(self.alone, best[1] if best else self.alone, fitted) or self._why_not_after(way)
        if why:
            self.left.append(WayRow(way.name, None, why))
            return None
        begun = time.thread_time()
        made = self.measure(way)
        if isinstance(made, str):
            self.left += [WayRow(way.name, None, made)] if made else []
            return None
        self._cpu[way.name] = max(time.thread_time() - begun, made.cpu_s)
        self.tried.append((way, made))
        return made

    def _why_not_after(self, way: Way) -> str:
        """Why a way is not worth compiling after those that it builds on; empty if it is."""
        base = self.best[0].base if self.best is not None else ALONE
        if not way.published and way.after and base != way.after:
            return f"{way.after} is not the best so far"
        if not way.published and way.unless and way.unless in base:
            return f"{base} is better than {way.continues}"
        smaller = next((made for other, made in self.tried if other.name == way.extends), None)
        if smaller is None or smaller.counted_s is None or self.alone.counted_s is None:
            return ""
        longer = smaller.counted_s / self.alone.counted_s - 1
        return f"{way.extends} takes {longer:.1%} longer than XLA alone" if longer > ways.LITTLE else ""

    def _try_guided(self, way: Way) -> None:
        """Tries a way with a profile of its predicted times, if that can make it the best."""
        made = self.alone if way is _ALONE else next((one for each, one in self.tried if each.name == way.name), None)
        best = self.best[1] if self.best else self.alone
        in_vain = self._in_vain and not way.continues  # sunk waits are another schedule
        if ways.GUIDED not in self.sets or in_vain or made is None or made.waits <= ways.WAITING:
            return
        before, shortest = made.counted_s or 0.0, best.counted_s or 0.0
        if way is _ALONE and shortest < (1 - ways.ENOUGH) * before:
            return
        if before * (1 - ways.MOST_GUIDED * made.waits) < shortest:
            other = ways.guided(way, made, self.users)
            if other is not None and all(other.name != each.name for each, _ in self.tried):
                found = self._try(other)
                if not way.continues:
                    self._in_vain = found is not None and (found.counted_s or 0.0) > before * (1 - STEP_NOISE)

    def _try_flags(self, base: Way, name: str) -> None:
        """Tries a way with a published set of XLA flags."""
        if self.alone.counted_s is None or name not in self.sets:
            return
        done = {way.name for way, _ in self.tried} | {row.name for row in self.left}
        for way in ways.flagged(base, self.users, (name,)):
            if way.name in done:
                continue
            leads = way.variant is None and self._leads_under_flags()
            behind = way.variant is not None and self.best is not None and self.best[0].base != way.base
            rest = behind or (way.variant is None and name != ways.COMBINED and self._gains_hardly())
            self._try(replace(way, gained=1.0) if leads else replace(way, exposed=ways.HIDDEN) if rest else way)
            if name != ways.COMBINED:  # few large messages: nothing is left to place
                self._try_guided(way)

    def _gains_hardly(self) -> bool:
        """Whether the best way so far is hardly shorter than XLA alone."""
        shortest = self.best[1].counted_s if self.best is not None else None
        return shortest is None or shortest > (1 - ways.HARDLY) * (self.alone.counted_s or 0.0)

    def _leads_under_flags(self) -> bool:
        """Whether XLA alone under a published set is the best so far, or so close that another set may win."""
        best = self.best
        made = [one.counted_s for way, one in self.tried if way.variant is None and one.counted_s is not None]
        return best is not None and best[1].counted_s is not None and (
            min(made, default=float("inf")) <= (1 + ways.LITTLE) * best[1].counted_s)


# ---- the search


_FUSION = "all-reduce-fusion"
_NO_PAIRS = "it accumulates no gradients over an even number of micro-batches, or one needs what another computes"
_UNCHANGED, _EQUAL = "no pass changes the module", "its module equals that of another way"


@dataclass
class FastestWay:
    """One search for the ways of a contest whose cluster is known.

    Args:
      contest: the module and the terms.
      policy: what is done about the XLA pass that miscompiles.
      maker: runs passes.
      compilations: what XLA makes of modules, some of it ahead.
    """

    contest: Contest
    policy: MiscompilePolicy
    maker: CandidateMaker
    compilations: Compilations
    _made: dict[str, RewriteCandidate] = field(default_factory=dict, init=False)
    """The key is the name of a way without its XLA flags."""
    _refused: list[InputError] = field(default_factory=list, init=False)

    def run(self, baseline: BaselineRun) -> ChosenModule:
        """Chooses.

        Args:
          baseline: the compilation of XLA alone, which has begun.

        Raises:
          NotCompared: XLA refuses the user's own module, or every rewritten one.
          InputError: no partitioner's program can be used.
        """
        first = self._ways(None)[0]
        program = baseline.program() if self.contest.exposing else None
        self._begin(first, program, baseline)
        if self.contest.exposing and not baseline.confirms(program):
            program = baseline.program()
            self._made.clear()
            self._begin(first, program, baseline)
        begun = self._made[first.name]
        if not begun.made.report.before:
            return ChosenModule(begun.source, begun.made, begun.variant)  # it communicates nothing
        alone, flags = self._baseline(baseline, begun.source)
        alone = timed(alone, self.contest.cluster)
        guided = (ways.GUIDED,) if self.contest.guided else ()
        sets = ways.flag_sets_for(self.contest.cluster) if self.contest.auto else guided
        ladder = Ladder(alone, lambda way: self._measured(way, program, alone, flags), self.contest.budget,
                        flags_given(self.contest.place), sets, not self.contest.auto)
        best = ladder.run(self._ways(free_bytes(alone) if self.contest.auto else None)) or self._with_scatters(ladder)
        return self._chosen(ladder, best, flags)

    def _ways(self, free: int | None) -> list[Way]:
        contest = self.contest
        scatters = contest.exposing and contest.place.platform == "gpu" and not contest.budget
        found = ways.rewriting_ways(contest.passes, contest.name, contest.place.platform, xla_scatters=scatters,
                               free=free if contest.budget is None else None, to_experts=self._to_experts())
        users = flags_given(contest.place)
        return [ways.with_own_options(way, users) for way in found]

    def _to_experts(self) -> bool:
        """Whether ``auto`` may send tokens to their experts: XLA partitions the step, and the pass changes it."""
        return self.contest.auto and self.contest.exposing and (
            self.maker.resharded(Variant((TokensToExperts(),))) is not None)

    def _begin(self, first: Way, program: bytes | None, baseline: BaselineRun) -> None:
        """Runs the passes of the first way, and begins its compilation while that of XLA alone runs."""
        candidate = self._candidate(first, program)
        fused_in_vain = candidate.sends_more_fused(expected_wire(candidate.source))
        if candidate.made.report.changed and not fused_in_vain and not baseline.future.done():
            self.compilations.begin(candidate)

    def _candidate(self, way: Way, program: bytes | None) -> RewriteCandidate:
        """The candidate of a way, made from the partitioner's program with which it sends least."""
        assert way.variant is not None
        if way.base not in self._made and way.continues in self._made:
            first = self._made[way.continues]
            later = tuple(step for step in way.variant.passes if step not in first.variant.passes)
            self._made[way.base] = self.maker.longer(first, later)
        elif way.base not in self._made:
            self._made[way.base] = min(self.maker.make(program, way.variant), key=lambda one: one.order)
        return self._made[way.base]

    def _with_scatters(self, ladder: Ladder) -> tuple[Way, Measured] | None:
        """Tries ways without the rule that takes carried sums out of scatters, if none with it is better than XLA
        alone."""
        without = []
        for name, candidate in list(self._made.items()):
            for other in self.maker.without_the_rule([candidate]):
                way = Way(f"{name}, sums inside scatters", other.variant)
                self._made[way.name] = other
                without.append(way)
        return ladder.run(without) if without else None

    @cached_property
    def _has_pairs(self) -> bool:
        """Whether micro-batches of the step may run two at a time."""
        return has_pairs(next(iter(self._made.values())).source)

    def _baseline(self, baseline: BaselineRun, source: Module) -> tuple[Measured, Flags]:
        """XLA alone, and its flags beyond the user's. A step that XLA miscompiles is compiled without the faulty
        pass."""
        if self.policy.miscompiles(source):
            made = baseline.measured() if baseline.flags else self.policy.protected_alone(self.compilations)
            return made, self.policy.flags
        if baseline.flags:
            baseline = self.policy.unprotected(baseline, self.compilations, View(source))
        return baseline.measured(), {}

    def _measured(self, way: Way, program: bytes | None, alone: Measured, flags: Flags) -> Measured | str:
        """XLA's compilation of a way; a sentence if it is not compiled."""
        try:
            if way.variant is None:
                own = scheduled(self.contest.module, self.contest.place, {**flags, **dict(way.flags)})[0]
                return timed(own, self.contest.cluster)
            smaller = self._made.get(way.extends)
            if smaller is not None and not smaller.made.memory_refused:
                return f"no pass of {way.extends} lacks memory"
            if any(isinstance(step, InterleaveMicroBatches) for step in way.variant.passes) and not self._has_pairs:
                return _NO_PAIRS
            known = list(self._made.items())
            candidate = self._candidate(way, program)
            if not way.flags and (why := self._not_new(way, candidate, known, alone)):
                return why
            return timed(self.compilations.measured(candidate, dict(way.flags)), self.contest.cluster)
        except InputError as error:
            self._refused += [] if way.variant is None else [error]
            return error.what

    def _not_new(self, way: Way, candidate: RewriteCandidate, known: list[tuple[str, RewriteCandidate]],
                 alone: Measured) -> str:
        """Why a candidate need not be compiled; empty if it has to be."""
        if not candidate.made.report.changed:
            return _UNCHANGED
        if any(name != way.base and other.made.bytecode == candidate.made.bytecode for name, other in known):
            return _EQUAL
        fuses = any(step.name == _FUSION for step in candidate.variant.passes)
        moves = any(step.beside_compute for step in candidate.variant.passes)
        if fuses and not moves and expected_wire(candidate.made.module) > alone.wire * (1 + NOISE):
            return "fused, it would send more: XLA cannot make a reduce-scatter from part of a call"
        return ""

    def _chosen(self, ladder: Ladder, best: tuple[Way, Measured] | None, flags: Flags) -> ChosenModule:
        """The best way with its comparison; if XLA alone is best, the comparison with the first way that was
        compiled."""
        rewritten = [(way, made) for way, made in ladder.tried if way.variant is not None]
        if not rewritten and self._refused:
            raise NotCompared(f"XLA refuses the rewritten module: {self._refused[-1].what}")
        way, made = best or (rewritten[0] if rewritten else (self._ways(None)[0], None))
        candidate = self._made[way.base] if way.base in self._made else next(iter(self._made.values()))
        against = ""
        if best is None:
            why = "" if made is None else why_not(ladder.alone, made, self.contest.budget,
                                                  candidate.keeps_communication, way.name)
            against = why or "no way is better"
        if best is None and not self.contest.auto and not any(c.made.report.changed for c in self._made.values()):
            return ChosenModule(candidate.source, candidate.made, candidate.variant)
        comparison = XlaComparison(self.contest.cluster, ladder.alone, made, candidate.partitioner, against, False,
                                   name=way.name, tried=ladder.rows())
        if self.contest.keep == "compiled" and best is not None and way.variant is not None:
            comparison = self._confirmed(candidate, way, comparison, flags)
        return ChosenModule(candidate.source, candidate.made, candidate.variant, comparison)

    def _confirmed(self, candidate: RewriteCandidate, way: Way, comparison: XlaComparison, flags: Flags
                   ) -> XlaComparison:
        """The comparison after both are compiled to the end."""
        place, cluster = self.contest.place, self.contest.cluster
        alone = timed(compiled(self.contest.module, place, flags), cluster)
        ours = timed(compiled(candidate.made.module, place, {**self.policy.flags, **dict(way.flags)}), cluster)
        against = why_not(alone, ours, self.contest.budget, candidate.keeps_communication, way.name)
        return XlaComparison(comparison.devices, alone, ours, comparison.partitioner, against, True, name=way.name,
                             tried=comparison.tried)
