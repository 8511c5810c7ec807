"""Tries ways to compile a step, the most promising first, until no other way can be better."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hlorewrite.jaxbridge.baseline.comparison import WayRow
from hlorewrite.jaxbridge.baseline.judge import ALONE, STEP_NOISE, too_large, why_not
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.choose.ways import (
    BOTH,
    COMBINED,
    ENOUGH,
    GUIDED,
    HARDLY,
    HIDDEN,
    LITTLE,
    MOST_GUIDED,
    UNROLLED,
    WAITING,
    Way,
    best_way,
    flagged,
    guided,
)

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
    """Whether the last profile shortened no step: the others are not tried then."""

    def run(self, ways: Sequence[Way]) -> tuple[Way, Measured] | None:
        """Tries ways, each also guided by a profile, then published XLA flags with the best of them. Combined messages
        are tried right after the first way: they decide whether memory is worth spending.

        Args:
          ways: the ways, in the order in which they are tried.

        Returns:
          The best; None if that is XLA alone.
        """
        for way in ways:
            self._try(way)
            self._try_guided(way)
            if way is ways[0] and not self.named:
                self._try_guided(_ALONE)
                self._try_flags(_ALONE, COMBINED)
        both = BOTH in self.sets and self._combined_leads()
        if both:
            self._try_unrolled(BOTH)
        if not both or self._combined_leads():
            self._try_unrolled(UNROLLED)
        return self.best

    def _try_unrolled(self, name: str) -> None:
        """Tries a published set that unrolls loops, on the best way and on XLA alone."""
        base = self._shortest_rewritten()
        if base is not None:
            self._try_flags(base, name)
        self._try_flags(_ALONE, name)

    def _combined_leads(self) -> bool:
        """Whether combined messages alone make the best step so far."""
        return self.best is not None and self.best[0].published == COMBINED

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
        return best_way(self.alone, self.tried, self.budget)

    def rows(self) -> tuple[WayRow, ...]:
        """All ways, XLA alone first, those that were not compiled last."""
        tried = [WayRow(way.name, made, why_not(self.alone, made, self.budget, name=way.name),
                        self._cpu.get(way.name, made.cpu_s), way.flags) for way, made in self.tried]
        return (WayRow(ALONE, self.alone, "", self.alone.cpu_s), *tried, *self.left)

    def _try(self, way: Way) -> Measured | None:
        """Compiles a way and returns its figures; None if it is not worth trying or cannot be compiled."""
        best = self.best
        fitted = any(not too_large(self.alone, made, self.budget) for _, made in self.tried)
        why = way.worth_trying(self.alone, best[1] if best else self.alone, fitted) or self._why_not_extended(way)
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

    def _why_not_extended(self, way: Way) -> str:
        """Why a way that spends more memory than another is not worth compiling; empty if it is."""
        smaller = next((made for other, made in self.tried if other.name == way.extends), None)
        if smaller is None or smaller.counted_s is None or self.alone.counted_s is None:
            return ""
        longer = smaller.counted_s / self.alone.counted_s - 1
        return f"{way.extends} takes {longer:.1%} longer than XLA alone" if longer > LITTLE else ""

    def _try_guided(self, way: Way) -> None:
        """Tries a way with a profile of its predicted times, if that can make it the best."""
        made = self.alone if way is _ALONE else next((one for each, one in self.tried if each.name == way.name), None)
        best = self.best[1] if self.best else self.alone
        if GUIDED not in self.sets or self._in_vain or made is None or made.waits <= WAITING:
            return
        before, shortest = made.counted_s or 0.0, best.counted_s or 0.0
        if way is _ALONE and shortest < (1 - ENOUGH) * before:
            return
        if before * (1 - MOST_GUIDED * made.waits) < shortest:
            other = guided(way, made, self.users)
            if other is not None and all(other.name != each.name for each, _ in self.tried):
                found = self._try(other)
                self._in_vain = found is not None and (found.counted_s or 0.0) > before * (1 - STEP_NOISE)

    def _try_flags(self, base: Way, name: str) -> None:
        """Tries a way with a published set of XLA flags."""
        if self.alone.counted_s is None or name not in self.sets:
            return
        done = {way.name for way, _ in self.tried} | {row.name for row in self.left}
        for way in flagged(base, self.users, (name,)):
            if way.name in done:
                continue
            leads = way.variant is None and self._leads_under_flags()
            behind = way.variant is not None and self.best is not None and self.best[0].base != way.base
            rest = behind or (way.variant is None and name != COMBINED and self._gains_hardly())
            self._try(replace(way, gained=1.0) if leads else replace(way, exposed=HIDDEN) if rest else way)
            if name != COMBINED:  # few large messages: nothing is left to place
                self._try_guided(way)

    def _gains_hardly(self) -> bool:
        """Whether the best way so far is hardly shorter than XLA alone."""
        shortest = self.best[1].counted_s if self.best is not None else None
        return shortest is None or shortest > (1 - HARDLY) * (self.alone.counted_s or 0.0)

    def _leads_under_flags(self) -> bool:
        """Whether XLA alone under a published set is the best so far, or so close that another set may win."""
        best = self.best
        made = [one.counted_s for way, one in self.tried if way.variant is None and one.counted_s is not None]
        return best is not None and best[1].counted_s is not None and (
            min(made, default=float("inf")) <= (1 + LITTLE) * best[1].counted_s)
