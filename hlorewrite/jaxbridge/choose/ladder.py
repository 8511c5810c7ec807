"""Tries ways to compile a step, the most promising first, until no other way can be better."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hlorewrite.jaxbridge.baseline.comparison import WayRow
from hlorewrite.jaxbridge.baseline.judge import ALONE, too_large, why_not
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.choose.ways import Way, best_way, flagged

Measure = Callable[[Way], "Measured | str"]
"""What XLA makes of a way, with its times; a sentence where it is not compiled."""


@dataclass
class Ladder:
    """One search, which ends where nothing better is expected.

    Args:
      alone: what XLA alone makes, with its times.
      measure: compiles a way.
      budget: bytes of temporaries that the user allows; None without a budget.
      users: XLA flags that the user sets.
      offers_flags: whether published XLA flags are ways.
    """

    alone: Measured
    measure: Measure
    budget: int | None = None
    users: Mapping[str, object] = field(default_factory=dict)
    offers_flags: bool = False
    tried: list[tuple[Way, Measured]] = field(default_factory=list, init=False)
    left: list[WayRow] = field(default_factory=list, init=False)
    _cpu: dict[str, float] = field(default_factory=dict, init=False)

    def run(self, ways: Sequence[Way]) -> tuple[Way, Measured] | None:
        """Tries ways, then published XLA flags with the best of them.

        Args:
          ways: in the order in which they are tried.

        Returns:
          The best; None where XLA alone is.
        """
        for way in ways:
            self._try(way)
        if self.offers_flags and self.alone.counted_s is not None:
            self._try_flags()
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

    def _try_flags(self) -> None:
        best = self.best
        for base in (*([best[0]] if best else []), Way(ALONE)):
            for way in flagged(base, self.users):
                self._try(way)
