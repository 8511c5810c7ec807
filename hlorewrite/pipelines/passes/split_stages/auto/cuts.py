"""Stages by dynamic programming: which cuts make the slowest stage fastest.

After the inter-operator pass of Alpa (Zheng et al., OSDI 2022, section 5): for a bound on the slowest stage, the cut
of the least total time; over several bounds. A pipeline takes about the sum of its stages plus m - 1 times the slowest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.pipelines.passes.split_stages.auto.cut_costs import CutCosts

_SLACK = (1.0, 1.02, 1.05, 1.1, 1.25, 1.5)
"""Bounds on the slowest stage that are tried, as multiples of the least one."""


@dataclass(frozen=True)
class StageLimits:
    """The devices of the stages.

    Attributes:
      devices: devices of each stage's mesh, shape [stages].
      alive: micro-batches that each stage keeps at once, shape [stages].
      memory_bytes: the memory of one device in bytes.
      copies: bytes of parameters, accumulators and optimizer state for each byte of parameters.
      bytes_per_s: the rate of a transfer between meshes.
    """

    devices: tuple[int, ...]
    alive: tuple[int, ...]
    memory_bytes: float
    copies: float
    bytes_per_s: float


def best_cuts(costs: CutCosts, limits: StageLimits) -> list[tuple[int, ...]]:
    """The most promising cuts into stages.

    Args:
      costs: the possible cuts.
      limits: what the stages run on.

    Returns:
      Indices of ``costs.cuts`` that rise, one fewer than stages, the most promising first; empty when no cut fits the
      memory.

    Example:
      >>> costs = CutCosts((1, 2, 3), (3, 2, 1), np.arange(5.0), np.zeros(3), np.zeros(5), np.zeros(5))
      >>> best_cuts(costs, StageLimits((1, 1), (2, 1), 1.0, 4.0, 1.0))[0]
      (1,)
    """
    found: dict[tuple[int, ...], None] = {}
    for exposed in (0.0, 1.0):
        times = [_stage_times(costs, limits, stage, exposed) for stage in range(len(limits.devices))]
        slowest = _least(times, np.maximum)[0]
        for slack in _SLACK if np.isfinite(slowest) else ():
            bounded = [np.where(each <= slowest * slack * (1 + 1e-9), each, np.inf) for each in times]
            cut = _least(bounded, np.add)[1]
            if cut is not None:
                found[cut] = None
    return list(found)


def _stage_times(costs: CutCosts, limits: StageLimits, stage: int, exposed: float) -> np.ndarray:
    """Seconds of a stage from one place to another, infinite if it does not fit; shape [places, places]."""
    devices = limits.devices[stage]
    sent = np.concatenate([[0.0], costs.sent, [0.0]]) * exposed / limits.bytes_per_s
    seconds = (costs.seconds[None, :] - costs.seconds[:, None]) / devices + sent[None, :] + sent[:, None]
    memory = (costs.static[None, :] - costs.static[:, None]) * limits.copies + (
        costs.kept[None, :] - costs.kept[:, None]) * limits.alive[stage] / devices
    places = np.arange(len(costs.seconds))
    return np.where((places[:, None] < places[None, :]) & (memory <= limits.memory_bytes), seconds, np.inf)


def _least(times: Sequence[np.ndarray], join: np.ufunc) -> tuple[float, tuple[int, ...] | None]:
    """The least maximum or sum over stages, and its cuts."""
    best, chosen = times[0][0], list[np.ndarray]()
    for each in times[1:]:
        joined = join(best[:, None], each)
        chosen.append(np.argmin(joined, axis=0))
        best = np.min(joined, axis=0)
    if not np.isfinite(best[-1]):
        return float("inf"), None
    place, cuts = len(best) - 1, list[int]()
    for each in reversed(chosen):
        place = int(each[place])
        cuts.append(place - 1)
    return float(best[-1]), tuple(reversed(cuts))
