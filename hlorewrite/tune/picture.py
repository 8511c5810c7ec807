"""The frontier of a tuned step as a picture. Needs the ``viz`` extra."""

from __future__ import annotations

from typing import Any

from hlorewrite.cost.training.plots import draw_times
from hlorewrite.errors import HlorewriteError
from hlorewrite.tune.choice import TunedStep

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
    timed = sorted((p.step_s, p.memory_bytes, p.choice.name) for p in tuned.points if p.step_s is not None)
    if not timed:
        raise HlorewriteError("nothing to draw: no choice has a predicted step time")
    return draw_times([(size / 2**30, seconds * 1e3) for seconds, size, _ in timed],
                      [name[:_MOST_NAME] for _, _, name in timed], of="choice", ylabel="predicted step, ms",
                      title=f"for {target}")
