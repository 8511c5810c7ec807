"""A driver of which the calls do nothing: its own part of what a step costs the host."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from hlorewrite.pipelines.runtime.compile_once import Hold
from hlorewrite.pipelines.runtime.driver import PipelineDriver


def idle_driver(driver: PipelineDriver) -> PipelineDriver:
    """The same driver with functions that return None for each result.

    Args:
      driver: the driver; it stays as it is.

    Returns:
      A driver of the same instructions, arguments and results.
    """
    idle = PipelineDriver.__new__(PipelineDriver)
    idle.__dict__.update(driver.__dict__)
    idle.instructions = tuple(dataclasses.replace(step, function=_nothing(len(step.writes)), hold=Hold())
                              for step in driver.instructions)
    return idle


def _nothing(count: int) -> Callable[..., tuple[None, ...]]:
    results = (None,) * count
    return lambda *_: results
