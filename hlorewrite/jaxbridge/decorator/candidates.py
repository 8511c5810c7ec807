"""Which module a step is compiled from: rewritten candidates of both partitioners, or the user's own.

The pipelines of XLA:GPU and XLA:CPU simplify an auto-sharded module differently before they partition it, and neither
result communicates less in every case. So the passes run on both, and what comes out competes with XLA alone, each
compiled up to the generation of code. No clock and no live memory has a say: all processes of a step choose the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from jaxlib import version as jaxlib_version

from hlorewrite.errors import InputError, UsageError, did_you_mean
from hlorewrite.hlo.xla_hazards import find_hazards
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.inline import inline_calls
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Format, Module
from hlorewrite.ir.save import emit
from hlorewrite.ir.view import View
from hlorewrite.jaxbridge.against_xla.comparison import EXACT, XlaComparison, compared, too_much_memory
from hlorewrite.jaxbridge.against_xla.measured import Flags, Measured, compiled, scheduled
from hlorewrite.jaxbridge.decorator.report import Rewritten
from hlorewrite.jaxbridge.decorator.variants import Variant
from hlorewrite.jaxbridge.xla import protection
from hlorewrite.jaxbridge.xla.partition import (
    NotExposed,
    expose_collectives,
    from_partitioned,
    numbered,
    refuse_lost_annotations,
)
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.jaxbridge.xla.without_code import DeviceSet

Keep = Literal["better", "compiled", "always"]
"""``better``: what the schedule and the buffers say; ``compiled``: both compiled to the end; ``always``: no judge."""
Rewriter = Callable[[Module, Variant], Rewritten]
"""Runs the passes of a variant over a module, which it changes."""


class NotCompared(InputError):
    """A step cannot be compared with XLA alone, so it is compiled as it came."""


def checked_keep(keep: str) -> Keep:
    """A policy that exists.

    Raises:
      UsageError: it does not.
    """
    for known in get_args(Keep):
        if keep == known:
            return known
    raise UsageError(f'keep="{keep}" is unknown', hint=did_you_mean(keep, get_args(Keep)))


@dataclass(frozen=True)
class ChosenModule:
    """What became of a step.

    Attributes:
      source: what the passes ran on: the module, or what a partitioner made of it.
      made: the rewritten module.
      variant: what was run on it.
      comparison: beside XLA alone; None where no pass changed anything.
      refused: sentences about partitioners whose program could not be used.
    """

    source: Module
    made: Rewritten
    variant: Variant
    comparison: XlaComparison | None = None
    refused: tuple[str, ...] = ()


@dataclass
class _Candidate:
    partitioner: str
    source: Module
    made: Rewritten
    variant: Variant
    future: Future[Measured] | None = None

    @property
    def order(self) -> tuple[int, int]:
        """What the rewritten module sends, by itself: bytes, then calls."""
        report = self.made.report
        return sum(report.executed_bytes_after.values()), sum(c.trips for c in report.after)


@dataclass
class Competition:
    """XLA alone and the candidates for one module.

    Args:
      module: the user's module; it is not changed.
      place: what it is compiled for.
      rewriter: runs passes.
      variants: the passes, then what takes less memory.
      exposing: whether XLA's partitioner has to run first.
      protect: compile candidates without the XLA pass that miscompiles on GPU.
      keep: ``better`` or ``compiled``.
    """

    module: Module
    place: DeviceSet
    rewriter: Rewriter
    variants: tuple[Variant, ...]
    exposing: bool
    protect: bool = True
    keep: Keep = "better"
    refused: list[InputError] = field(default_factory=list)

    def run(self) -> ChosenModule:
        """Makes the candidates and compares them with XLA alone.

        Returns:
          The candidate that is best, with its comparison; the first one where no pass changed any.

        Raises:
          NotCompared: XLA refuses the user's own module, or all rewritten ones.
          InputError: no partitioner's program can be used.
          HlorewriteError: a pass failed.
        """
        pool = ThreadPoolExecutor(max_workers=2)
        try:
            alone = pool.submit(scheduled, numbered(_own(self.module)), self.place, {}, self.exposing)
            candidates = self._candidates(pool, alone)
            changed = [c for c in candidates if c.made.report.changed]
            if not changed:
                return self._chosen(candidates[0], None)
            return self._best(changed, self._honest(_alone(alone), candidates[-1].source))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _candidates(self, pool: ThreadPoolExecutor, alone: Future[tuple[Measured, bytes | None]]) -> list[_Candidate]:
        """All candidates, that of the step's own platform last; the compilation of the first begins while XLA alone is
        still being compiled.
        """
        def from_target() -> Module:
            dump = None if alone.exception() is not None else alone.result()[1]
            if dump is None:
                raise NotExposed("XLA gives no partitioned program", location=self.module.name)
            made = from_partitioned(self.module, dump)
            refuse_lost_annotations(self.module, made)
            return made

        sources: list[tuple[str, Callable[[], Module]]] = [("", self.module.clone)]
        if self.exposing:
            on_cpu = self.place.platform == "cpu"
            sources = [("cpu", lambda: expose_collectives(self.module, self.place if on_cpu else None))]
            if not on_cpu:
                sources.append((self.place.platform, from_target))
        made: list[_Candidate] = []
        for name, source in sources:
            try:
                start = source()
            except InputError as error:
                self.refused.append(error)
                continue
            made.append(self._candidate(name, start, self.variants[0]))
            if len(made) == 1 and made[0].made.report.changed:
                self._begin(made[0], pool)
        if not made:
            raise self.refused[0]
        return made

    def _candidate(self, partitioner: str, source: Module, variant: Variant) -> _Candidate:
        return _Candidate(partitioner, source, self.rewriter(source.clone(), variant), variant)

    def _begin(self, candidate: _Candidate, pool: ThreadPoolExecutor) -> None:
        module = _own(candidate.made.module)
        candidate.future = pool.submit(lambda: scheduled(module, self.place, self._flags())[0])

    def _measured(self, candidate: _Candidate) -> Measured:
        if candidate.future is not None:
            return candidate.future.result()
        return scheduled(candidate.made.module, self.place, self._flags())[0]

    def _flags(self) -> Flags:
        """What a rewritten module is compiled with beside the user's flags."""
        if not self.protect:
            return {}
        return protection.options(jaxlib_version.__version_info__, self.place.platform,
                                  str(self.place.flags.get("xla_disable_hlo_passes", "")))

    def _honest(self, alone: Measured, partitioned: Module) -> Measured:
        """XLA alone; where XLA would get its own partitioned program wrong, XLA without the pass that does."""
        if not self._flags() or not _miscompiled(partitioned):
            return alone
        return scheduled(self.module, self.place, self._flags())[0]

    def _best(self, candidates: list[_Candidate], alone: Measured) -> ChosenModule:
        """The best candidate within memory; the passes run again on one that is over it, and take less."""
        best: tuple[_Candidate, XlaComparison] | None = None
        first: tuple[_Candidate, XlaComparison] | None = None
        for candidate in sorted(candidates, key=lambda c: c.order):
            if best is not None and best[1].ours.bytes <= candidate.order[0]:
                break
            try:
                compared_one = self._within_memory(candidate, alone)
            except InputError as error:
                self.refused.append(error)
                continue
            first = first or compared_one
            if compared_one[1].kept and (best is None or compared_one[1].ours.bytes < best[1].ours.bytes):
                best = compared_one
        if first is None:
            raise NotCompared(f"XLA does not take the rewritten module: {self.refused[-1].what}")
        if best is None:
            return self._chosen(*first)
        return self._chosen(best[0], self._confirmed(*best) if self.keep == "compiled" else best[1])

    def _within_memory(self, candidate: _Candidate, alone: Measured) -> tuple[_Candidate, XlaComparison]:
        """A candidate beside XLA alone; where it takes too much memory, the first variant of it that does not."""
        comparison = self._compared(candidate, alone)
        for variant in self.variants[1:]:
            if not too_much_memory(alone, comparison.ours):
                break
            smaller = self._candidate(candidate.partitioner, candidate.source, variant)
            if smaller.made.report.changed and smaller.made.bytecode != candidate.made.bytecode:
                candidate, comparison = smaller, self._compared(smaller, alone)
        return candidate, comparison

    def _compared(self, candidate: _Candidate, alone: Measured) -> XlaComparison:
        return compared(alone, self._measured(candidate), _words(self.place, self.module), candidate.partitioner,
                        or_equal=self._keeps_communication(candidate))

    def _keeps_communication(self, candidate: _Candidate) -> bool:
        """Whether the passes were about something else: every collective of the module is what it was."""
        before, after = (Counter((c.kind, c.bytes, c.trips) for c in side)
                         for side in (candidate.made.report.before, candidate.made.report.after))
        return not self.exposing and before == after

    def _confirmed(self, candidate: _Candidate, comparison: XlaComparison) -> XlaComparison:
        """Both compiled to the end: no byte of temporaries more than XLA alone."""
        alone = compiled(self.module, self.place, {})
        ours = compiled(candidate.made.module, self.place, self._flags())
        return compared(alone, ours, comparison.devices, comparison.partitioner, EXACT, with_code=True,
                        or_equal=self._keeps_communication(candidate))

    def _chosen(self, candidate: _Candidate, comparison: XlaComparison | None) -> ChosenModule:
        return ChosenModule(candidate.source, candidate.made, candidate.variant, comparison,
                      tuple(f"XLA's partitioner for one of two platforms gives nothing to use: {error.what}"
                            for error in self.refused))


def _alone(future: Future[tuple[Measured, bytes | None]]) -> Measured:
    try:
        return future.result()[0]
    except InputError as error:
        raise NotCompared(f"it cannot be compared with XLA alone: {error.what}") from None


def _own(module: Module) -> Module:
    """A copy in a context of its own, for another thread."""
    return replace(parse(emit(module, Format.BYTECODE), name=module.name), frames=module.frames)


def _miscompiled(module: Module) -> bool:
    """Whether XLA's code motion gets a module wrong."""
    copy = module.clone()
    inline_calls(Editor(View(copy)))
    return bool(find_hazards(View(copy)))


def _words(place: DeviceSet, module: Module) -> str:
    kind = str(getattr(place.devices[0], "device_kind", place.platform)) if place.devices else "CPU"
    return f"{for_spmd(module).devices} x {kind}"
