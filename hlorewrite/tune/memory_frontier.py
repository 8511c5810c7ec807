"""The effect of a memory budget: the bytes a step sends, against the memory that passes keep for it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.tables import table

ALL = 1 << 50
"""A budget that no step uses up."""
MOST_RUNS = 40
_FINEST = 512
"""Budgets that differ by less than this share of what the largest one uses are not distinguished."""


@dataclass(frozen=True)
class BudgetPoint:
    """A rewritten step.

    Attributes:
      kept_bytes: what passes took of the budget: gathered values, local sums, buffers of combined calls.
      executed_bytes: what its collectives send in one step.
      collectives_s: their predicted time, one after the other.
    """

    kept_bytes: int
    executed_bytes: int
    collectives_s: float

    @property
    def cost(self) -> tuple[int, float]:
        """Equal for budgets that make no difference."""
        return self.executed_bytes, self.collectives_s


def memory_frontier(measure: Callable[[int], BudgetPoint]) -> tuple[BudgetPoint, ...]:
    """Finds the budgets at which a step changes, by bisection.

    Args:
      measure: rewrites the step with a budget in bytes.

    Returns:
      Points by memory, each with fewer bytes than those before it.

    Example:
      >>> steps = [BudgetPoint(0, 90, 9e-6), BudgetPoint(10, 50, 5e-6), BudgetPoint(40, 20, 2e-6)]
      >>> found = memory_frontier(lambda budget: max((s for s in steps if s.kept_bytes <= budget),
      ...                                            key=lambda s: s.kept_bytes))
      >>> [point.kept_bytes for point in found]
      [0, 10, 40]
    """
    least, most = measure(0), measure(ALL)
    points, runs = [least, most], 2
    pending = [(0, least, most)]
    finest = max(1, most.kept_bytes // _FINEST)
    # Ends: an interval is replaced by halves of it down to the finest, and the runs are counted.
    while pending and runs < MOST_RUNS:
        pending.sort(key=lambda each: each[0] - each[2].kept_bytes)
        low, below, above = pending.pop(0)
        if below.cost == above.cost or above.kept_bytes - low <= finest:
            continue
        middle = (low + above.kept_bytes) // 2
        point, runs = measure(middle), runs + 1
        points.append(point)
        pending += [(low, below, point), (middle, point, above)]
    return _not_beaten(points)


def _not_beaten(points: list[BudgetPoint]) -> tuple[BudgetPoint, ...]:
    kept: list[BudgetPoint] = []
    for point in sorted(points, key=lambda each: (each.kept_bytes, each.executed_bytes, each.collectives_s)):
        if not kept or point.executed_bytes < kept[-1].executed_bytes:
            kept.append(point)
    return tuple(kept)


def chosen(points: tuple[BudgetPoint, ...], budget: int) -> BudgetPoint:
    """The point that a budget buys."""
    return [point for point in points if point.kept_bytes <= budget][-1]


def frontier_text(points: tuple[BudgetPoint, ...], budget: int, topology: str) -> str:
    """The points as a table; a star marks what a budget buys.

    Args:
      points: the points, by memory.
      budget: bytes.
      topology: the cluster that times are for.
    """
    rows = [["", "memory kept", "executed", "of no budget", f"time on {topology}"]]
    for point in points:
        mark = "*" if point == chosen(points, budget) else ""
        rows.append([mark, format_bytes(point.kept_bytes, 1), format_bytes(point.executed_bytes, 1),
                     f"{point.executed_bytes / max(1, points[0].executed_bytes):.3f}",
                     format_seconds(point.collectives_s)])
    return "\n".join([*table(rows, "<>>>>"), f"* within --memory-budget={format_bytes(budget, 1).replace(' ', '')}"])


def frontier_data(points: tuple[BudgetPoint, ...], budget: int) -> dict[str, Any]:
    """The same for programs."""
    return {"budget_bytes": budget, "chosen": asdict(chosen(points, budget)), "points": [asdict(p) for p in points]}
