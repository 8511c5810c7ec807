"""One run of ``hlorewrite tune``: choices from the cache or measured, within the time, and the plan of the best one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hlorewrite.errors import HlorewriteError
from hlorewrite.tune.choice import TunedStep, TunePoint
from hlorewrite.tune.search import TuneSearch
from hlorewrite.util.sizes import format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hlorewrite.jaxbridge.choose.tune_process import TuneProcess
    from hlorewrite.tune.choice import NamedFlags, TuneCache, TuneChoice
    from hlorewrite.util.progress import Step


@dataclass
class TuneRun:
    """Searches, keeps what was measured, and makes the plan of the best choice.

    Args:
      process: measures.
      cache: figures of earlier runs; new ones are added.
      step: says on the terminal what is being done.
      memory: bytes a device has.
      flag_sets: names and XLA flags to try.
      partitioned: whether XLA's partitioner has to run before the passes.
      planned: whether a plan is wanted.
    """

    process: TuneProcess
    cache: TuneCache
    step: Step
    memory: int
    flag_sets: Sequence[NamedFlags]
    partitioned: bool
    planned: bool
    _search: TuneSearch = field(init=False)
    _plans: dict[TuneChoice, str] = field(default_factory=dict, init=False)
    """Plans of choices that were the best when they were measured, so that there is a plan when time runs out."""
    _seconds: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._search = TuneSearch(self._figures, self.memory, self.flag_sets, self.partitioned)

    def search(self) -> TunedStep:
        """Tries all choices, or as many as the time allows."""
        return self._search.run()

    def finished(self, found: TunedStep) -> TunedStep:
        """The frontier and XLA alone compiled to the end, as far as the time allows."""
        made: dict[TunePoint, TunePoint] = {}
        for point in dict.fromkeys((*found.points[:1], *found.frontier)):
            if point.compile_s is None and not point.failed:
                self.step(f"compiling to the end: {point.choice.name}")
                try:
                    whole = self.process.finished(point)
                except HlorewriteError:
                    continue  # its compile time stays unknown
                if whole is not None:
                    made[point] = self.cache.add(whole)
        return replace(found, points=tuple(made.get(point, point) for point in found.points))

    def plan(self, found: TunedStep) -> str:
        """The content of the plan file of the fastest choice within the memory.

        Raises:
          HlorewriteError: there is none, or it cannot be kept in a plan.
        """
        if found.best is None:
            raise HlorewriteError("no plan is written: no choice fits, or none was measured",
                                  hint="allow more memory or time")
        known = self._plans.get(found.best.choice)
        return known or self.process.plan(found.best.choice, limited=False) or ""

    def _figures(self, choice: TuneChoice) -> TunePoint | None:
        known = self.cache.points.get(choice)
        if known is not None:
            return known
        self.step(f"{choice.name}{self._rest()}")
        begun = time.monotonic()
        try:
            point = self.process.measured(choice)
        except HlorewriteError as error:  # what crashed once need not crash again, so it is not kept
            return TunePoint(choice, failed=error.what)
        if point is None:
            return None
        self._seconds.append(time.monotonic() - begun)
        self.cache.add(point)
        if self.planned and TunedStep((*self._search.points, point), self.memory).best == point:
            self._keep_plan(choice)
        return point

    def _keep_plan(self, choice: TuneChoice) -> None:
        try:
            made = self.process.plan(choice)
        except HlorewriteError:
            return  # it is said where this choice is the best of all
        if made is not None:
            self._plans[choice] = made

    def _rest(self) -> str:
        """About how long the rest takes, once a choice was measured."""
        if not self._seconds:
            return ""
        rest = self._search.remaining * sum(self._seconds) / len(self._seconds)
        if self.process.ends is not None:
            rest = min(rest, max(0.0, self.process.ends - time.monotonic()))
        return f", about {format_seconds(rest)} left"
