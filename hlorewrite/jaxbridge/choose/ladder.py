"""Tries ways to compile a step, the most promising first, until no other way can be better."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hlorewrite.jaxbridge.baseline.comparison import WayRow
from hlorewrite.jaxbridge.baseline.judge import ALONE, STEP_NOISE, too_large, why_not
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.choose.ways import COMBINED, LITTLE, UNROLLED, Way, best_way, flagged

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
      sets: the published sets of XLA flags to try.
    """

    alone: Measured
    measure: Measure
    budget: int | None = None
    users: Mapping[str, object] = field(default_factory=dict)
    sets: Sequence[str] = ()
    tried: list[tuple[Way, Measured]] = field(default_factory=list, init=False)
    left: list[WayRow] = field(default_factory=list, init=False)
    _cpu: dict[str, float] = field(default_factory=dict, init=False)
    _spoils: set[tuple[str, str]] = field(default_factory=set, init=False)
    """Pairs of a way and a published set that made its step longer."""

    def run(self, ways: Sequence[Way]) -> tuple[Way, Measured] | None:
        """Tries ways, then published XLA flags with the best of them. Combined messages are tried right after the first
        way: they decide whether memory is worth spending.

        Args:
          ways: the ways, in the order in which they are tried.

        Returns:
          The best; None if that is XLA alone.
        """
        for way in ways:
            self._try(way)
            if way is ways[0]:
                self._try_flags((way, _ALONE), [name for name in self.sets if name == COMBINED])
        best = self.best
        known = {way.name: way for way, _ in self.tried}
        self._try_flags((*([known[best[0].base]] if best and best[0].base in known else []), _ALONE), self.sets)
        return self.best

    @property
    def best(self) -> tuple[Way, Measured] | None:
        """The best way so far; None for XLA alone."""
        return best_way(self.alone, self.tried, self.budget)

    def rows(self) -> tuple[WayRow, ...]:
        """All ways, XLA alone first, those that were not compiled last."""
        tried = [WayRow(way.name, made, why_not(self.alone, made, self.budget, name=way.name),
                        self._cpu.get(way.name, made.cpu_s), way.flags) for way, made in self.tried]
        return (WayRow(ALONE, self.alone, "", self.alone.cpu_s), *tried, *self.left)

    def _try(self, way: Way) -> None:
        best = self.best
        fitted = any(not too_large(self.alone, made, self.budget) for _, made in self.tried)
        why = way.worth_trying(self.alone, best[1] if best else self.alone, fitted)
        if why:
            self.left.append(WayRow(way.name, None, why))
            return
        begun = time.thread_time()
        made = self.measure(way)
        if isinstance(made, str):
            self.left += [WayRow(way.name, None, made)] if made else []
            return
        self._cpu[way.name] = max(time.thread_time() - begun, made.cpu_s)
        self.tried.append((way, made))

    def _try_flags(self, bases: Sequence[Way], sets: Sequence[str]) -> None:
        """Tries published XLA flags on some ways, each combination once."""
        if self.alone.counted_s is None:
            return
        done = {way.name for way, _ in self.tried} | {row.name for row in self.left}
        for base in bases:
            for way in flagged(base, self.users, sets):
                if way.name in done:
                    continue
                leads = way.variant is None and self._leads_under_flags()
                longer = self._spoilers(way, of_all=not leads)
                if longer:
                    self.left.append(WayRow(way.name, None, f"XLA made an earlier step longer by {min(longer)!r}"))
                    continue
                self._try(replace(way, gained=1.0) if leads else way)
                self._note_spoiled(way)

    def _leads_under_flags(self) -> bool:
        """Whether XLA alone under a published set is the best so far, or so close that another set may win."""
        best = self.best
        made = [one.counted_s for way, one in self.tried if way.variant is None and one.counted_s is not None]
        return best is not None and best[1].counted_s is not None and (
            min(made, default=float("inf")) <= (1 + LITTLE) * best[1].counted_s)

    def _spoilers(self, way: Way, *, of_all: bool) -> set[str]:
        """Published sets that made the step of any way, or of this one, longer, so this way is not worth trying.

        Unrolled loops take long to compile: they are not tried once any of the sets has made a step longer.
        """
        sets = {way.published} if way.published != UNROLLED else set(self.sets)
        return {published for base, published in self._spoils if published in sets and (of_all or base == way.base)}

    def _note_spoiled(self, way: Way) -> None:
        made = {each.name: one.counted_s for each, one in self.tried}
        with_set, without = made.get(way.name), made.get(way.base, self.alone.counted_s)
        if with_set and without and with_set > without * (1 + STEP_NOISE):
            self._spoils.add((way.base, way.published))
