"""The module that a step is compiled from: rewritten candidates of both partitioners, or the user's own.

What the passes make of an auto-sharded module competes with XLA alone, each compiled up to the generation of code. The
passes run on the program of the platform's own partitioner, which comes out of the compilation of XLA alone. The
pipeline of XLA:CPU simplifies a module differently before it partitions it: it keeps sums apart from scatters. So its
program is a second candidate where the first one still scatters into a carry. No clock and no live memory has a say:
all processes of a step choose the same.

XLA alone compiles in another thread. The passes run as soon as its partitioner is through, and what the judge is
expected to ask for next is compiled meanwhile. A compilation that was expected wrongly is not looked at.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from jaxlib import version as jaxlib_version

from hlorewrite.errors import InputError
from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import ALL_REDUCE
from hlorewrite.ir.context import new_context
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Format, Module
from hlorewrite.ir.save import emit
from hlorewrite.ir.view import View
from hlorewrite.jaxbridge.baseline.baseline_run import BaselineRun, NotCompared
from hlorewrite.jaxbridge.baseline.comparison import EXACT, NOISE, XlaComparison, allowed_growth, compared, unbeaten
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured, compiled, scheduled, timed
from hlorewrite.jaxbridge.baseline.memory_grant import AloneMeasured
from hlorewrite.jaxbridge.baseline.miscompiled import adds_scatters_up, miscompiled, reduces_in_a_loop
from hlorewrite.jaxbridge.choose.carry_scatter import likely_one_call, scatters_into_a_choice, share_of_choices
from hlorewrite.jaxbridge.choose.comparator import NEAR, Judge, RewriteCandidate, cannot_be_better, done
from hlorewrite.jaxbridge.step.options import Keep
from hlorewrite.jaxbridge.step.report import Rewritten, collectives_by_op
from hlorewrite.jaxbridge.step.variants import Variant, has_carry_outside, takes_carry_outside, with_carry_outside
from hlorewrite.jaxbridge.xla import miscompile_workarounds
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.partition import expose_collectives

Rewriter = Callable[[Module, Variant], Rewritten]
"""Runs the passes of a variant over a module, which it changes."""


@dataclass(frozen=True)
class ChosenModule:
    """What became of a step.

    Attributes:
      source: what the passes ran on: the module, or what a partitioner made of it.
      made: the rewritten module.
      variant: what was run on it.
      partitioner: whose program the source is; empty where nothing was partitioned.
      comparison: compared with XLA alone; None where no pass changed anything.
      refused: sentences about partitioners whose program could not be used.
    """

    source: Module
    made: Rewritten
    variant: Variant
    partitioner: str = ""
    comparison: XlaComparison | None = None
    refused: tuple[str, ...] = ()


@dataclass
class Competition:
    """XLA alone and the candidates for one module.

    Args:
      module: the user's module; it is not changed.
      place: what it is compiled for.
      devices: how many devices it is for.
      rewriter: runs passes.
      variants: the passes, then what takes less memory.
      exposing: whether XLA's partitioner has to run first.
      protect: compile candidates without the XLA pass that miscompiles on GPU.
      keep: ``better`` or ``compiled``.
      budget: bytes of temporaries that a candidate may take beyond what it may without a budget; None without one.
      alone: what XLA alone makes of the module, where that is known.
      cluster: the topology by which predicted steps are compared first; empty to compare bytes first.
    """

    module: Module
    place: DeviceSet
    devices: int
    rewriter: Rewriter
    variants: tuple[Variant, ...]
    exposing: bool
    protect: bool = True
    keep: Keep = "better"
    budget: int | None = None
    alone: AloneMeasured | None = None
    cluster: str = ""
    refused: list[InputError] = field(default_factory=list)
    protected: Future[AloneMeasured] | None = field(default=None, init=False)
    """What XLA alone makes of the module without the pass that miscompiles, where that was asked for."""
    wrong: bool | None = field(default=None, init=False)
    """Whether XLA alone miscompiles the module; None until that is asked."""

    def run(self) -> ChosenModule:
        """Makes the candidates and compares them with XLA alone.

        Returns:
          The candidate that is best, with its comparison; the first one where no pass changed any.

        Raises:
          NotCompared: XLA refuses the user's own module, or all rewritten ones.
          InputError: no partitioner's program can be used.
          HlorewriteError: a pass failed.
        """
        with ExitStack() as cleanup:
            dumping = self.exposing and self.alone is None
            folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="hlorewrite-")) if dumping else None
            pool = ThreadPoolExecutor(max_workers=2)
            cleanup.callback(pool.shutdown, cancel_futures=True)
            return self._run(pool, self._alone_begun(pool, folder))

    def _run(self, pool: ThreadPoolExecutor, alone: BaselineRun) -> ChosenModule:
        program = alone.program() if self.exposing and self.alone is None else None
        candidates = self._candidates(pool, program)
        if self.exposing and not alone.future.done():
            self._begin_likely(candidates, pool, bool(alone.flags))
        if self.exposing and not alone.confirms(program):
            self.refused.clear()
            candidates = self._candidates(pool, alone.program())
        changed = [c for c in candidates if c.made.report.changed]
        if not changed:
            return self._chosen(candidates[0], None)
        source = candidates[0].source
        if alone.flags and not self._miscompiled(source):
            alone = self._unprotected(alone, pool, View(source))
        measured = alone.measured()
        if not alone.flags and any(c.begun for c in changed) and self._beaten_wrongly(changed, measured, source):
            self.protected = pool.submit(scheduled, _own(self.module), self.place, self._flags())
        return self._best(changed, measured, source, alone.flags)

    def _alone_begun(self, pool: ThreadPoolExecutor, folder: str | None) -> BaselineRun:
        """What XLA alone makes of the module, from another thread; without the pass that miscompiles, where it likely
        would: the partitioner runs before that pass."""
        known = self.alone
        if known is not None:
            return BaselineRun(done(lambda: known))
        if folder is not None:
            dumps = Path(folder)
            flags = self._flags() if adds_scatters_up(self.module) else {}
            return BaselineRun(pool.submit(scheduled, _own(self.module), self.place, flags, True, dumps), dumps, flags)
        return BaselineRun(pool.submit(scheduled, _own(self.module), self.place, {}, False))

    def _unprotected(self, alone: BaselineRun, pool: ThreadPoolExecutor, source: View) -> BaselineRun:
        """What XLA alone makes of a module that it compiles rightly: the same, where that pass has nothing to do."""
        if not reduces_in_a_loop(source):
            return replace(alone, flags={})
        return BaselineRun(pool.submit(scheduled, _own(self.module), self.place, {}, False))

    def _candidates(self, pool: ThreadPoolExecutor, dump: bytes | None) -> list[RewriteCandidate]:
        """All candidates, that of the step's own platform first; its compilation begins at once where XLA alone still
        runs and it is the only one: another one most often sends less, and then it needs none.
        """
        made: list[RewriteCandidate] = []
        sources = partitioned_sources(self.module, self.place, self.exposing, dump)
        for name, source in sources:
            try:
                start = source()
            except InputError as error:
                self.refused.append(error)
                continue
            if made:
                made.append(self._candidate(name, start, self.variants[0]))
                break
            first, enough = self._first(name, start, several=len(sources) > 1)
            made.append(first)
            if enough:
                if first.made.report.changed and not self.exposing and not self._likely_unbeaten(first):
                    self._begin(first, pool)
                break
        if not made:
            raise self.refused[0]
        return made

    def _first(self, partitioner: str, source: Module, several: bool) -> tuple[RewriteCandidate, bool]:
        """The candidate of one partitioner's program, and whether no other of several programs need be tried.

        Before the passes, a rule takes carries out of scatters. A scatter into zeros takes memory, so the all-reduces
        that the rule matches have to send more than the bytes in which candidates count as equal.
        """
        if several and takes_carry_outside(self.variants[0]) and scatters_into_a_choice(source):
            if share_of_choices(source) * NEAR <= NEAR - 1:
                return self._candidate(partitioner, source, self.variants[0]), True
            outside = self._candidate(partitioner, source, with_carry_outside(self.variants[0]))
            if not outside.sends_the_same and not scatters_into_a_choice(outside.made.module):
                return outside, True
        inside = self._candidate(partitioner, source, self.variants[0])
        return inside, not several or not scatters_into_a_choice(inside.made.module)

    def _left_inside(self, candidates: list[RewriteCandidate]) -> list[RewriteCandidate]:
        """What the passes make without that rule, of candidates that it was applied to."""
        made = [self._candidate(c.partitioner, c.source, self.variants[0])
                for c in candidates if has_carry_outside(c.variant)]
        return [c for c in made if c.made.report.changed]

    def _candidate(self, partitioner: str, source: Module, variant: Variant) -> RewriteCandidate:
        return RewriteCandidate(partitioner, source, self.rewriter(source.clone(), variant), variant)

    def _smaller(self, given: RewriteCandidate, variant: Variant) -> RewriteCandidate:
        """What another variant makes of a candidate's source; its passes do not run again if they have run first."""
        variant = with_carry_outside(variant) if has_carry_outside(given.variant) else variant
        shorter = given.made.shorter
        if shorter is not None and shorter.passes == variant.passes and given.variant.memory == variant.memory:
            return RewriteCandidate(given.partitioner, given.source, shorter.finish(), variant)
        return self._candidate(given.partitioner, given.source, variant)

    def _begin(self, candidate: RewriteCandidate, pool: ThreadPoolExecutor) -> None:
        candidate.future = self._submitted(candidate, pool)

    def _begin_likely(self, candidates: list[RewriteCandidate], pool: ThreadPoolExecutor, protected: bool) -> None:
        """Begins the compilation that the judge will most likely ask for first, while that of XLA alone runs, with its
        code motion or ``protected``."""
        changed = [c for c in candidates if c.made.report.changed]
        if not changed:
            return
        likely = min(changed, key=lambda c: c.order)
        if not protected and self._likely_unbeaten(likely):
            return
        unlimited = [variant for variant in self.variants[1:] if variant.memory is None]
        if unlimited and likely.sends_more_fused(expected_wire(likely.source)):
            unfused = likely.smaller[unlimited[0]] = self._smaller(likely, unlimited[0])
            likely = unfused if unfused.made.report.changed else likely
        likely.begun = self._submitted(likely, pool)

    def _likely_unbeaten(self, candidate: RewriteCandidate) -> bool:
        """Whether XLA:GPU alone is expected to make one call of all, and the candidate to send no less."""
        if self.place.platform != "gpu" or not self._bounded:
            return False
        expected = likely_one_call(candidate.source)
        return expected is not None and candidate.order[0] >= expected * (1 - Fraction(NOISE))

    def _cannot_be_better(self, candidates: list[RewriteCandidate], alone: Measured) -> bool:
        """Whether no candidate need be compiled, nor one without the rule for carries."""
        return self._bounded and all(not has_carry_outside(c.variant) and cannot_be_better(c, alone)
                                     for c in candidates)

    @property
    def _bounded(self) -> bool:
        """Whether a module says what it sends at best: bytes decide, and XLA's code motion leaves candidates alone."""
        return not self.cluster and (self.place.platform != "gpu" or bool(self._flags()))

    def _submitted(self, candidate: RewriteCandidate, pool: ThreadPoolExecutor) -> Future[Measured]:
        module = _own(candidate.made.module, candidate.made.bytecode)
        return pool.submit(lambda: scheduled(module, self.place, self._flags())[0])

    def _beaten_wrongly(self, candidates: list[RewriteCandidate], alone: Measured, partitioned: Module) -> bool:
        """Whether no candidate is expected to be better than XLA alone, which miscompiles the step."""
        wire, calls = min(c.order for c in candidates)
        as_much = wire >= alone.wire * (1 - NOISE) and calls >= alone.calls
        return as_much and self._miscompiled(partitioned)

    def _miscompiled(self, partitioned: Module) -> bool:
        """Whether XLA alone miscompiles the module; found out once."""
        if self.wrong is None:
            self.wrong = bool(self._flags()) and miscompiled(partitioned)
        return self.wrong

    def _alone_protected(self) -> Measured:
        """What XLA alone makes of the module without the pass that miscompiles it."""
        self.protected = self.protected or done(lambda: scheduled(self.module, self.place, self._flags()))
        return self.protected.result()[0]

    def _flags(self) -> Flags:
        """What a rewritten module is compiled with in addition to the user's flags."""
        if not self.protect:
            return {}
        return miscompile_workarounds.options(jaxlib_version.__version_info__, self.place.platform,
                                  str(self.place.flags.get("xla_disable_hlo_passes", "")))

    def _judge(self, alone: Measured, alone_flags: Flags | None = None) -> Judge:
        devices = devices_in_words(self.place, self.devices)
        return Judge(timed(alone, self.cluster) if self.cluster else alone, self.place, devices, self._flags(),
                     self._smaller, self.refused, alone_flags or {}, self.cluster, self.budget)

    def _best(self, candidates: list[RewriteCandidate], alone: Measured, partitioned: Module,
              alone_flags: Flags) -> ChosenModule:
        """The best candidate. Costlier ones are tried when the cheaper ones are not better."""
        judge, rest = self._judge(alone, alone_flags), self.variants[1:]
        if self._cannot_be_better(candidates, alone) and (alone_flags or not self._miscompiled(partitioned)):
            first = min(candidates, key=lambda c: c.order)
            return self._chosen(first, unbeaten(alone, judge.devices, first.partitioner))
        unlimited = [variant for variant in rest if variant.memory is None]
        best = judge.best(candidates, unlimited)
        if best is None and not alone_flags and self._miscompiled(partitioned):
            # XLA alone sends less because it computes something else: compared is what it makes without that pass.
            judge = self._judge(self._alone_protected(), self._flags())
            best = judge.best(candidates, unlimited)
        if best is None:
            others = self._left_inside(candidates)
            best, candidates = judge.best(others, unlimited), [*candidates, *others]
        best = best or judge.best(candidates, rest, near=False)
        if best is not None:
            confirmed = self._confirmed(*best, judge.alone_flags) if self.keep == "compiled" else best[1]
            return self._chosen(best[0], confirmed)
        if judge.first is None:
            raise NotCompared(f"XLA does not take the rewritten module: {self.refused[-1].what}")
        return self._chosen(*judge.first)

    def _confirmed(self, candidate: RewriteCandidate, comparison: XlaComparison,
                   alone_flags: Flags) -> XlaComparison:
        """Both compiled to the end: no byte of temporaries more than XLA alone, and no longer step."""
        cluster = self.place.topology
        alone = timed(compiled(self.module, self.place, alone_flags), cluster)
        ours = timed(compiled(candidate.made.module, self.place, self._flags()), cluster)
        allowed = allowed_growth(self.budget, candidate.made.memory, bool(self.cluster))
        return compared(alone, ours, comparison.devices, comparison.partitioner, EXACT.grown(allowed),
                        with_code=True, or_equal=candidate.keeps_communication)

    def _chosen(self, candidate: RewriteCandidate, comparison: XlaComparison | None) -> ChosenModule:
        return ChosenModule(candidate.source, candidate.made, candidate.variant, candidate.partitioner, comparison,
                      tuple(f"XLA's partitioner for one of two platforms gives nothing to use: {error.what}"
                            for error in self.refused))


def partitioned_sources(module: Module, place: DeviceSet, exposing: bool,
                        dump: bytes | None = None) -> list[tuple[str, Callable[[], Module]]]:
    """Partitioners by name, and the programs they make; the module itself where nothing is to be partitioned.

    Args:
      module: the user's module.
      place: what it is compiled for.
      exposing: whether XLA's partitioner has to run first.
      dump: what the platform's own partitioner made in another compilation; None to run it.
    """
    if not exposing:
        return [("", module.clone)]
    own = (place.platform, lambda: expose_collectives(module, place, dump))
    return [own] if place.platform == "cpu" else [own, ("cpu", lambda: expose_collectives(module))]


def expected_wire(partitioned: Module) -> Fraction:
    """What XLA alone is expected to put on the wire, before that is known: it makes reduce-scatters of all-reduces that
    are only sliced, which send half as much, and moves nothing.

    Args:
      partitioned: what XLA's partitioner made of the step.

    Returns:
      Bytes of one device.
    """
    return sum((executed.wire_bytes / (2 if op.name == ALL_REDUCE.op and _is_only_sliced(op) else 1)
                for op, executed in collectives_by_op(View(partitioned))), Fraction(0))


def _is_only_sliced(op: ir.Operation) -> bool:
    return all(use.owner.name == "stablehlo.dynamic_slice" for result in op.results for use in result.uses)


def _own(module: Module, bytecode: bytes | None = None) -> Module:
    """A copy in a context of its own, for another thread; read from the module's bytecode where that is known."""
    written = bytecode or emit(module, Format.BYTECODE)
    return replace(parse(written, name=module.name, context=new_context(load=False)), frames=module.frames)


def devices_in_words(place: DeviceSet, count: int) -> str:
    """What a step is compiled for.

    Example:
      >>> devices_in_words(DeviceSet("cpu"), 8)
      '8 x CPU'
    """
    kind = str(getattr(place.devices[0], "device_kind", place.platform)) if place.devices else "CPU"
    return f"{count} x {kind}"
