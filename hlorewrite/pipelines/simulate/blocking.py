"""The simulation with transfers that block both their meshes, one instruction after the other."""

from __future__ import annotations

from hlorewrite.pipelines.schedules import Schedule, sequence
from hlorewrite.pipelines.simulate.durations import Durations
from hlorewrite.pipelines.simulate.events import Times, empty_times


def run_blocking(schedule: Schedule, durations: Durations) -> Times:
    """Simulates a schedule whose sends and receives stand between the tasks.

    A transfer starts when both meshes have come to it, and neither computes until it ends. All meshes keep one order
    (:func:`hlorewrite.pipelines.schedules.sequence`), so that one pass through it gives all times.

    Args:
      schedule: a schedule that passes its check.
      durations: what takes how long.

    Returns:
      The times.
    """
    times = empty_times(schedule)
    count, free = schedule.microbatches, [0.0] * schedule.meshes
    position = [0] * schedule.meshes
    released = {}
    numbers, meshes, peers = sequence(schedule)
    for task, mesh, peer in zip(numbers.tolist(), meshes.tolist(), peers.tolist(), strict=True):
        if peer < 0:
            times.start[task] = free[mesh]
            times.end[task] = free[mesh] = free[mesh] + durations.tasks[mesh][position[mesh]]
            position[mesh] += 1
            if task in durations.reduce_in:
                stage = durations.reduce_in[task]
                free[mesh] += durations.stage_reduction[stage]
                times.reductions.append((mesh, stage, times.end[task], free[mesh]))
                released[task] = free[mesh]
            continue
        seconds = durations.transfer[task // count]
        if not seconds:  # nothing to send: the receiver still waits for the result to exist
            free[peer] = max(free[peer], released.get(task, times.end[task]))
            continue
        at = max(free[mesh], free[peer])
        times.sent[task] = at
        times.arrived[task] = free[mesh] = free[peer] = at + seconds
    for mesh in range(schedule.meshes):
        if durations.reduce_at_end[mesh]:
            end = free[mesh] + durations.reduce_at_end[mesh]
            times.reductions.append((mesh, -1, free[mesh], end))
            free[mesh] = end
        times.updates[mesh] = (free[mesh], free[mesh] + durations.update[mesh])
    return times
