"""Simulates a pipeline, and breaks down the time and memory of its iteration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hlorewrite.pipelines.actions.order import ProgramOrder, liveness
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program
from hlorewrite.pipelines.mpmd.types import device_bytes
from hlorewrite.pipelines.schedules import ROW, Schedule, earliest, peak_live, sequence
from hlorewrite.pipelines.simulate.cost import PipelineCost
from hlorewrite.pipelines.simulate.events import Durations, Times, durations_of, empty_times, run_overlapped

Spans = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Starts, ends and bytes of buffers, each of shape [buffers]."""


def program_buffers(program: Program, order: ProgramOrder, times: Mapping[int, tuple[float, float]],
                    end: float) -> dict[str, Spans]:
    """The buffers of one step.

    Args:
      program: the program.
      order: its actions.
      times: start and end of each action, by its position in the order.
      end: when the step is over, seconds.

    Returns:
      The buffers of one device of each mesh, by the mesh's name.
    """
    lives = liveness(program, order)
    kept = {slot for place, slot in enumerate(order.arguments) if place not in program.donated} | set(order.results)
    sizes = {slot: device_bytes(kind, program.meshes[kind.mesh]) for slot, number in enumerate(order.values)
             if (kind := program.types[number]).mesh}
    born = dict.fromkeys(order.arguments, 0.0)
    dies = dict.fromkeys(kept, end)
    for position, action in enumerate(order.actions):
        start, stop = times[position]
        born.update((slot, start) for slot in action.writes)
        for slot in (*action.reads, *action.writes):
            dies[slot] = max(stop, dies.get(slot, 0.0))
    for position, action in enumerate(order.actions):
        if isinstance(action.step, FragmentCall):
            free = [sizes.get(slot) for slot in action.writes]
            for place in sorted(lives.donated[action.step.callee]):
                if sizes.get(action.reads[place]) in free:  # a result is written over it
                    free.remove(sizes[action.reads[place]])
                    dies[action.reads[place]] = times[position][0]
    held: dict[str, list[tuple[float, float, float]]] = {name: [] for name in program.meshes}
    for slot, start in born.items():
        if slot in sizes:
            held[program.types[order.values[slot]].mesh].append((start, dies.get(slot, start), sizes[slot]))
    return {name: (found[:, 0], found[:, 1], found[:, 2]) for name, spans in held.items()
            for found in [np.array(spans).reshape(-1, 3)]}


@dataclass(frozen=True)
class Simulation:
    """One step of a pipeline.

    Every mesh's iteration is compute + bubble + exposed communication: the bubble is what the schedule would leave
    idle if communication were free, exposed communication what it adds.

    Args:
      schedule: the schedule.
      cost: the costs.
      comm_shift: whether gradient reductions are in the update.
      overlap: whether transfers run concurrently with the computation.
      times: when everything happens.
      buffers: for a program, the buffers of one device of each mesh; None if ``cost`` says what a stage
        keeps.
    """

    schedule: Schedule
    cost: PipelineCost
    comm_shift: bool
    overlap: bool
    times: Times
    buffers: tuple[Spans, ...] | None = None

    @cached_property
    def iteration_time_s(self) -> float:
        """Seconds from the first task's start to the end of the last update."""
        return max(end for _, end in self.times.updates)

    @cached_property
    def period_s(self) -> float:
        """Seconds between the starts of two steps when a mesh need not wait for the others to start the next:
        the longest time from a mesh's first task to the end of its update."""
        first = [self.times.start[int(numbers[0])] for numbers in self.schedule.numbers]
        return max(end - start for start, (_, end) in zip(first, self.times.updates, strict=True))

    @cached_property
    def compute_s(self) -> list[float]:
        """Seconds each mesh computes, with its update."""
        tasks = durations_of(self.schedule, self.cost, self.comm_shift)
        return [sum(each) + update for each, update in zip(tasks.tasks, tasks.update, strict=True)]

    @cached_property
    def free_communication_s(self) -> float:
        """The iteration time if all communication were free."""
        durations = durations_of(self.schedule, self.cost, self.comm_shift)
        _, end = earliest(self.schedule, durations.tasks)
        return max(max(end[number] for number in numbers.tolist()) + update
                   for numbers, update in zip(self.schedule.numbers, durations.update, strict=True))

    @property
    def bubble_s(self) -> list[float]:
        """Seconds each mesh would be idle if communication were free."""
        return [self.free_communication_s - compute for compute in self.compute_s]

    @property
    def bubble_ratio(self) -> float:
        """Mean bubble over the iteration time with free communication: (n-1)/(n-1+m) for GPipe and 1F1B."""
        free = self.free_communication_s
        return sum(self.bubble_s) / len(self.bubble_s) / free if free else 0.0

    @property
    def exposed_communication_s(self) -> float:
        """Seconds that communication adds to the iteration."""
        return max(self.iteration_time_s - self.free_communication_s, 0.0)

    @property
    def communication_s(self) -> float:
        """Seconds of all transfers and reductions together, exposed or not."""
        _, _, sent, arrived = self.arrays
        return float((arrived - sent).sum()) + sum(end - start for _, _, start, end in self.times.reductions)

    def memory(self, mesh: int) -> tuple[np.ndarray, np.ndarray]:
        """Bytes of one device of a mesh over time; see :func:`memory_of`.

        Args:
          mesh: the mesh.

        Returns:
          Times at which the memory changes and the bytes from then on, each of shape [changes].
        """
        return memory_of(self, mesh)

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Start, end, sent and arrived of ``times``, each of shape [3, stages, micro-batches]."""
        shape = (3, self.schedule.stages, self.schedule.microbatches)
        times = self.times
        start, end, sent, arrived = (np.array(each).reshape(shape)
                                     for each in (times.start, times.end, times.sent, times.arrived))
        return start, end, sent, arrived

    @cached_property
    def peak_bytes(self) -> list[float]:
        """The peak memory of one device of each mesh."""
        return [float(self.memory(mesh)[1].max()) for mesh in range(self.schedule.meshes)]

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain data, iteration time first."""
        return {
            "iteration_time_s": self.iteration_time_s, "period_s": self.period_s, "bubble_ratio": self.bubble_ratio,
            "exposed_communication_s": self.exposed_communication_s, "communication_s": self.communication_s,
            "schedule": self.schedule.name, "stages": self.schedule.meshes, "chunks": self.schedule.stages
            // self.schedule.meshes, "microbatches": self.schedule.microbatches, "comm_shift": self.comm_shift,
            "overlap": self.overlap,
            "per_stage": [{"compute_s": compute, "bubble_s": bubble, "exposed_communication_s":
                           self.exposed_communication_s, "peak_microbatches": alive, "peak_bytes": peak}
                          for compute, bubble, alive, peak in zip(self.compute_s, self.bubble_s,
                                                                  peak_live(self.schedule), self.peak_bytes,
                                                                  strict=True)]}


def simulate(schedule: Schedule, cost: PipelineCost, *, comm_shift: bool = False, overlap: bool = True) -> Simulation:
    """Simulates one step of a pipeline.

    Without Comm-Shift a stage's gradients are all-reduced inside the task that completes them: that of the last
    micro-batch, whose gradient for the stage before leaves only when the whole task is done. With it they are reduced
    in the update, after the mesh's last task.

    Args:
      schedule: a schedule that passes its check.
      cost: seconds and bytes of its stages and transfers.
      comm_shift: whether gradient reductions are in the update.
      overlap: whether transfers run concurrently with the computation, or block both their meshes.

    Returns:
      The simulation.

    Raises:
      PlanError: schedule and costs have different numbers of stages, or the schedule deadlocks.

    Example:
      >>> from hlorewrite.pipelines.schedules import make_schedule
      >>> from hlorewrite.pipelines.simulate import uniform_cost
      >>> simulate(make_schedule("1f1b", 4, 8), uniform_cost(4, 1.0, 2.0)).iteration_time_s
      33.0
      >>> costs = uniform_cost(4, 1.0, 2.0, all_reduce_s=5.0)
      >>> [simulate(make_schedule("1f1b", 4, 8), costs, comm_shift=on).iteration_time_s for on in (False, True)]
      [53.0, 38.0]
    """
    durations = durations_of(schedule, cost, comm_shift)
    times = run_overlapped(schedule, durations) if overlap else run_blocking(schedule, durations)
    return Simulation(schedule, cost, comm_shift, overlap, times)


def memory_of(simulation: Simulation, mesh: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of one device of a mesh.

    The memory of a micro-batch on a mesh lives from the start of its forward to the end of its backward (of its weight
    gradient if the backward is split). The buffers of transfers are added to it: at the receiver from the start of the
    transfer to the start of the task that takes it over (forward) or to its end (backward); at the sender from the end
    of the task to the end of the transfer. Of a program the buffers are its own
    (:mod:`hlorewrite.pipelines.simulate.simulation`).

    Args:
      simulation: the simulation.
      mesh: the mesh.

    Returns:
      Times at which the memory changes, rising from 0, and the bytes from then on, each of shape [changes].

    Example:
      >>> from hlorewrite.pipelines.schedules import gpipe
      >>> from hlorewrite.pipelines.simulate import LinkCost, PipelineCost, StageCost, simulate
      >>> cost = PipelineCost((StageCost(1.0, 1.0, live_bytes=10.0, static_bytes=5.0),), ())
      >>> [each.tolist() for each in memory_of(simulate(gpipe(1, 2), cost), 0)]
      [[0.0, 1.0, 3.0, 4.0], [15.0, 25.0, 15.0, 5.0]]
    """
    if simulation.buffers is not None:
        return _levels([simulation.buffers[mesh]], 0.0)
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


def _levels(spans: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray | float]], static: float
            ) -> tuple[np.ndarray, np.ndarray]:
    """Sums spans into levels. At equal times, spans end before others begin."""
    begin, stop, size = [np.zeros(1)], [np.zeros(0)], [np.zeros(1)]
    for first, last, each in spans:
        sizes = np.broadcast_to(each, first.shape)
        real = (first >= 0) & (last > first) & (sizes > 0)
        begin.append(first[real])
        stop.append(last[real])
        size.append(sizes[real])
    found = np.concatenate(size)
    at = np.concatenate([*begin, *stop])
    change = np.concatenate([found, -found[1:]])
    times, which = np.unique(at, return_inverse=True)
    return times, static + np.cumsum(np.bincount(which, weights=change, minlength=len(times)))


# ---- the simulation with transfers that block both their meshes, one instruction after the other


def run_blocking(schedule: Schedule, durations: Durations) -> Times:
    """Simulates a schedule whose sends and receives are between the tasks.

    A transfer starts when both meshes have reached it, and neither computes until it ends. All meshes keep one order
    (:func:`hlorewrite.pipelines.schedules.sequence`), so that one pass through it gives all times.

    Args:
      schedule: a schedule that passes its check.
      durations: the duration of each activity.

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
