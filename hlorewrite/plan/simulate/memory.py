"""Memory of a device over time.

What a mesh keeps of a micro-batch lives from the start of its forward to the end of its backward (of its weight
gradient where the backward is split). Beside it stand the buffers of transfers: at the receiver from the start of
the transfer to the start of the task that takes it over (forward) or to its end (backward), at the sender from the
end of the task to the end of the transfer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlorewrite.plan.schedules import ROW

if TYPE_CHECKING:
    from hlorewrite.plan.simulate.simulation import Simulation


def memory_of(simulation: Simulation, mesh: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of one device of a mesh.

    Args:
      simulation: the simulation.
      mesh: the mesh.

    Returns:
      Times at which the memory changes, rising from 0, and the bytes from then on, each of shape [changes].

    Example:
      >>> from hlorewrite.plan.schedules import gpipe
      >>> from hlorewrite.plan.simulate import LinkCost, PipelineCost, StageCost, simulate
      >>> cost = PipelineCost((StageCost(1.0, 1.0, live_bytes=10.0, static_bytes=5.0),), ())
      >>> [each.tolist() for each in memory_of(simulate(gpipe(1, 2), cost), 0)]
      [[0.0, 1.0, 3.0, 4.0], [15.0, 25.0, 15.0, 5.0]]
    """
    schedule, cost = simulation.schedule, simulation.cost
    start, end, sent, arrived = simulation.arrays
    spans: list[tuple[np.ndarray, np.ndarray, float]] = []
    for stage in schedule.stages_of(mesh):
        forward, backward, weights = ROW["F"], ROW["B"], ROW["W"]
        done = np.where(end[weights, stage] >= 0, end[weights, stage], end[backward, stage])
        spans.append((start[forward, stage], done, cost.stages[stage].live_bytes))
        if stage:
            link = cost.links[stage - 1]
            spans += [(sent[forward, stage - 1], start[forward, stage], link.lower_bytes),
                      (end[backward, stage], arrived[backward, stage], link.lower_bytes)]
        if stage < schedule.stages - 1:
            link = cost.links[stage]
            spans += [(end[forward, stage], arrived[forward, stage], link.upper_bytes),
                      (sent[backward, stage + 1], end[backward, stage], link.upper_bytes)]
    static = sum(cost.stages[stage].static_bytes for stage in schedule.stages_of(mesh))
    return _levels(spans, static)


def _levels(spans: list[tuple[np.ndarray, np.ndarray, float]], static: float) -> tuple[np.ndarray, np.ndarray]:
    """Sums spans into levels; what ends at a time is gone before what begins then."""
    begin, stop, size = [np.zeros(1)], [np.zeros(0)], [np.zeros(1)]
    for first, last, each in spans:
        real = (first >= 0) & (last > first) & (each > 0)
        begin.append(first[real])
        stop.append(last[real])
        size.append(np.full(int(real.sum()), each))
    sizes = np.concatenate(size)
    at = np.concatenate([*begin, *stop])
    change = np.concatenate([sizes, -sizes[1:]])
    times, which = np.unique(at, return_inverse=True)
    return times, static + np.cumsum(np.bincount(which, weights=change, minlength=len(times)))
