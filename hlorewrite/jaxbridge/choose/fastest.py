"""Finds the fastest way to compile a step whose cluster is known: compiles ways and compares their predicted step
times."""

from dataclasses import dataclass, field

from hlorewrite.errors import InputError
from hlorewrite.ir import Module, View
from hlorewrite.jaxbridge.baseline.baseline_run import BaselineRun, NotCompared
from hlorewrite.jaxbridge.baseline.comparison import XlaComparison
from hlorewrite.jaxbridge.baseline.judge import NOISE, why_not
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured, compiled, scheduled, timed
from hlorewrite.jaxbridge.baseline.memory_grant import free_bytes
from hlorewrite.jaxbridge.baseline.modules import flags_given
from hlorewrite.jaxbridge.choose.candidates import CandidateMaker, ChosenModule, Contest, RewriteCandidate
from hlorewrite.jaxbridge.choose.ladder import Ladder
from hlorewrite.jaxbridge.choose.miscompile_policy import MiscompilePolicy
from hlorewrite.jaxbridge.choose.speculate import Compilations, expected_wire
from hlorewrite.jaxbridge.choose.ways import GUIDED, Way, flag_sets_for, rewriting_ways, with_own_options
from hlorewrite.jaxbridge.step.variants import Variant
from hlorewrite.passes.tokens_to_experts import TokensToExperts

_FUSION = "all-reduce-fusion"
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
        sets = flag_sets_for(self.contest.cluster) if self.contest.auto else (GUIDED,) if self.contest.guided else ()
        ladder = Ladder(alone, lambda way: self._measured(way, program, alone, flags), self.contest.budget,
                        flags_given(self.contest.place), sets, not self.contest.auto)
        best = ladder.run(self._ways(free_bytes(alone) if self.contest.auto else None)) or self._with_scatters(ladder)
        return self._chosen(ladder, best, flags)

    def _ways(self, free: int | None) -> list[Way]:
        contest = self.contest
        scatters = contest.exposing and contest.place.platform == "gpu" and not contest.budget
        ways = rewriting_ways(contest.passes, contest.name, contest.place.platform, xla_scatters=scatters,
                              free=free if contest.budget is None else None, to_experts=self._to_experts())
        users = flags_given(contest.place)
        return [with_own_options(way, users) for way in ways]

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
        if way.base not in self._made:
            self._made[way.base] = min(self.maker.make(program, way.variant), key=lambda one: one.order)
        return self._made[way.base]

    def _with_scatters(self, ladder: Ladder) -> tuple[Way, Measured] | None:
        """Tries ways without the rule that takes carried sums out of scatters, if none with it is better than XLA
        alone."""
        ways = []
        for name, candidate in list(self._made.items()):
            for other in self.maker.without_the_rule([candidate]):
                way = Way(f"{name}, sums inside scatters", other.variant)
                self._made[way.name] = other
                ways.append(way)
        return ladder.run(ways) if ways else None

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
