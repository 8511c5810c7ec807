"""The order in which choices are tried: pipelines, then budgets and buckets of the best, then XLA flags."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from hlorewrite.passmanager.named import AUTO
from hlorewrite.tune.choice import NamedFlags, TuneChoice, TunedStep, TunePoint, frontier, with_buckets

PASSES = ("comm", "time")
"""The pipelines that are tried first."""
BUCKETS = (25 << 20, 100 << 20, 500 << 20)
"""Bucket sizes of all-reduce-fusion: PyTorch DDP's default, and larger ones. Its own choice is by the cost model."""
FREE_SHARES = (0, 4, 1)
"""Budgets: none, a quarter, and all of the memory that the original leaves free."""
REFINED = 2
"""How many of the fastest pipelines get other budgets and buckets."""

Measure = Callable[[TuneChoice], TunePoint | None]
_LATER = (2 * len(FREE_SHARES), 2 * len(BUCKETS), 3)
"""About this many choices are tried in each round after the first, or for each set of flags."""


@dataclass
class TuneSearch:
    """Tries choices until all are tried.

    Args:
      measure: compiles a choice and simulates its schedule; None if the time is over and its figures are not known.
      memory: bytes a device has; None for no bound.
      flag_sets: names and flags to try on the frontier.
      partitioned: whether XLA's partitioner has to run first, so that the better of two partitioners is a choice.
    """

    measure: Measure
    memory: int | None
    flag_sets: Sequence[NamedFlags]
    partitioned: bool
    points: list[TunePoint] = field(default_factory=list, init=False)
    left_out: int = field(default=0, init=False)
    _rounds: int = field(default=0, init=False)
    _of_round: int = field(default=0, init=False)
    """Choices of the round that are still to be tried."""

    def run(self) -> TunedStep:
        """Tries the choices of all rounds; each round starts from what the ones before found.

        Returns:
          What was found.
        """
        for each in (self._pipelines, self._budgets, self._buckets, self._flags):
            choices = list(each())
            self._rounds += 1
            for tried, choice in enumerate(choices):
                self._of_round = len(choices) - tried
                self._try(choice)
        return TunedStep(tuple(self.points), self.memory, self.left_out)

    @property
    def remaining(self) -> int:
        """About how many choices are still to be tried, the current one included."""
        budgets, buckets, flagged = _LATER
        later = (budgets, buckets, flagged * len(self.flag_sets))
        return self._of_round + sum(later[max(0, self._rounds - 1):])

    def _try(self, choice: TuneChoice) -> None:
        if any(point.choice == choice for point in self.points):
            return
        point = self.measure(choice)
        if point is None:
            self.left_out += 1
        else:
            self.points.append(point)

    def _pipelines(self) -> Iterator[TuneChoice]:
        yield TuneChoice("")
        yield TuneChoice(AUTO, keep="better")
        for passes in PASSES:
            yield TuneChoice(passes)
            if self.partitioned:
                yield TuneChoice(passes, keep="better")

    def _fastest(self) -> list[TunePoint]:
        """The fastest rewritten ones that differ, whatever memory they take: a budget may make them fit."""
        kept: dict[str, TunePoint] = {}
        for point in sorted((p for p in self.points if p.step_s is not None and p.choice.passes),
                            key=lambda p: (p.step_s, p.memory_bytes)):
            kept.setdefault(point.digest, point)
        return list(kept.values())[:REFINED]

    def _budgets(self) -> Iterator[TuneChoice]:
        free = max(0, self.memory - self.points[0].memory_bytes) if self.memory and self.points else None
        for point in self._fastest():
            for share in FREE_SHARES if free else (0,):
                if point.choice.keep == "always":
                    yield replace(point.choice, budget=_rounded(free // share) if free and share else 0)

    def _buckets(self) -> Iterator[TuneChoice]:
        for point in self._fastest():
            if with_buckets(point.choice.passes, BUCKETS[0]):
                yield from (replace(point.choice, buckets=size) for size in BUCKETS)

    def _flags(self) -> Iterator[TuneChoice]:
        alone = [p for p in self.points if not p.choice.passes and p.step_s is not None]
        for point in dict.fromkeys((*frontier(self.points, self.memory), *alone)):
            for name, flags in self.flag_sets:
                yield replace(point.choice, flag_set=name, flags=flags)


def _rounded(size: int) -> int:
    """Bytes that read well: whole GiB, or whole MiB below one."""
    unit = 1 << 30 if size >= 1 << 30 else 1 << 20
    return size // unit * unit
