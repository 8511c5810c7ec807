"""The frontier of a tuned step as a picture. Needs the ``viz`` extra."""

from typing import Any

from hlorewrite.cost.training.plots import draw_times
from hlorewrite.errors import HlorewriteError
from hlorewrite.tune.choice import TunedStep, TunePoint

_MOST_NAME = 40


def draw_tuned(tuned: TunedStep, target: str) -> Any:
    """Predicted step time over memory of all choices, and the frontier.

    Args:
      tuned: what a search found.
      target: what for.

    Returns:
      The figure.

    Raises:
      HlorewriteError: no choice has a predicted time, or matplotlib is missing.
    """
    timed = [_spot(point) for point in tuned.points if point.step_s is not None]
    if not timed:
        raise HlorewriteError("nothing to draw: no choice has a predicted step time")
    return draw_times(timed, [(_spot(point), point.choice.name[:_MOST_NAME]) for point in tuned.frontier], of="choice",
                      ylabel="predicted step, ms", title=f"for {target}")


def _spot(point: TunePoint) -> tuple[float, float]:
    return point.memory_bytes / 2**30, (point.step_s or 0.0) * 1e3
