"""The discrete-event simulation with transfers that overlap computation.

Each mesh computes one task at a time, in its order, and has two ports: one for what leaves it, one for what comes
in. A transfer holds the sender's outgoing and the receiver's incoming port, an all-reduce between hosts both ports
of its mesh. Ports serve requests in the order in which they arise, as communication streams do. Every event costs O(log
meshes), because a mesh has at most one computation, one outgoing transfer and one reduction in progress.
"""

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.schedules import ROW, Schedule, ticks
from hlorewrite.pipelines.simulate.cost import PipelineCost

# ---- durations of a schedule's tasks, transfers and reductions, laid out for the simulation's inner loops


@dataclass(frozen=True)
class Durations:
    """The duration of each activity. A group is a position in [3, stages]: a kind of task on one stage.

    Args:
      tasks: seconds of each mesh's tasks, in its order.
      transfer: seconds of the transfer of a result, per group.
      peer: mesh that a result goes to, per group; -1 the same mesh, -2 none.
      mesh: mesh of each group.
      reduce_in: tasks (flat positions) that hold a stage's reduction -> the stage; without Comm-Shift.
      stage_reduction: seconds of each stage's reduction.
      stage_on_network: whether it needs the NICs.
      reduce_at_end: seconds of each mesh's reductions after its last task; with Comm-Shift.
      mesh_on_network: whether they need the NICs.
      update: seconds of each mesh's optimizer step.
    """

    tasks: list[list[float]]
    transfer: list[float]
    peer: list[int]
    mesh: list[int]
    reduce_in: dict[int, int]
    stage_reduction: list[float]
    stage_on_network: list[bool]
    reduce_at_end: list[float]
    mesh_on_network: list[bool]
    update: list[float]


def durations_of(schedule: Schedule, cost: PipelineCost, comm_shift: bool) -> Durations:
    """Durations of a schedule at given costs.

    Args:
      schedule: the schedule.
      cost: one entry for each of its stages.
      comm_shift: whether gradient reductions are in the update, not in the last backward of each stage.

    Returns:
      The durations.

    Raises:
      PlanError: costs and schedule have different numbers of stages.
    """
    stages, count = schedule.stages, schedule.microbatches
    if len(cost.stages) != stages:
        raise PlanError(f"the schedule {schedule.name} has {stages} stages, but there are costs for {len(cost.stages)}",
                        hint="pass one cost for each stage")
    of_kind = {kind: [stage.seconds(kind) for stage in cost.stages] for kind in ROW}
    tasks = [[of_kind[kind][stage] for kind, stage, _ in order] for order in schedule.orders]
    peer, transfer = [-2] * (3 * stages), [0.0] * (3 * stages)
    for stage in range(stages - 1):
        here, there = schedule.mesh_of[stage], schedule.mesh_of[stage + 1]
        peer[stage], peer[stages + stage + 1] = (there, here) if here != there else (-1, -1)
        if here != there:
            transfer[stage], transfer[stages + stage + 1] = cost.links[stage].forward_s, cost.links[stage].backward_s
    reductions = [stage.all_reduce_s for stage in cost.stages]
    last = {ROW[task.kind] * stages * count + task.stage * count + task.microbatch: task.stage
            for task in schedule.last_gradient() if reductions[task.stage]}
    mine = [schedule.stages_of(mesh) for mesh in range(schedule.meshes)]
    return Durations(tasks, transfer, peer, mesh=list(schedule.mesh_of) * 3, reduce_in={} if comm_shift else last,
                     stage_reduction=reductions,
                     stage_on_network=[stage.all_reduce_on_network for stage in cost.stages],
                     reduce_at_end=[sum(reductions[stage] for stage in each) if comm_shift else 0.0 for each in mine],
                     mesh_on_network=[any(cost.stages[stage].all_reduce_on_network for stage in each) for each in mine],
                     update=[sum(cost.stages[stage].update_s for stage in each) for each in mine])


# ---- the simulation


@dataclass
class Times:
    """The time of every event, in seconds: flat lists in the order of ``Schedule.numbers``, with -1 for events that
    never happen.

    Args:
      start: start of each task.
      end: end of each task's computation.
      sent: start of the transfer of each task's result.
      arrived: its end.
      reductions: (mesh, stage, start, end) of each gradient all-reduce; stage -1 if it is that of all the
        mesh's stages.
      updates: (start, end) of each mesh's update.
    """

    start: list[float]
    end: list[float]
    sent: list[float]
    arrived: list[float]
    reductions: list[tuple[int, int, float, float]]
    updates: list[tuple[float, float]]


def empty_times(schedule: Schedule) -> Times:
    """Times of nothing."""
    size = 3 * schedule.stages * schedule.microbatches
    return Times([-1.0] * size, [-1.0] * size, [-1.0] * size, [-1.0] * size, [], [(0.0, 0.0)] * schedule.meshes)


def run_overlapped(schedule: Schedule, durations: Durations) -> Times:
    """Simulates a schedule whose transfers run concurrently with the computation.

    Args:
      schedule: a schedule that passes its check.
      durations: the duration of each activity.

    Returns:
      The times.

    Raises:
      PlanError: the schedule deadlocks.
    """
    return _EventSimulation(schedule, durations).loop()


class _EventSimulation:
    """The state of one simulation. Events are (time, number, code): code is a mesh whose computation ends,
    ``meshes`` + the task whose transfer ends, or ``first_reduction`` + a mesh whose reduction or update ends."""

    def __init__(self, schedule: Schedule, durations: Durations) -> None:
        self.schedule, self.durations = schedule, durations
        self.meshes, self.count = schedule.meshes, schedule.microbatches
        self.block = schedule.stages * self.count
        self.first_reduction = self.meshes + 3 * self.block
        self.times = empty_times(schedule)
        self.order = [each.tolist() for each in schedule.numbers]
        self.position, self.busy = [0] * self.meshes, [False] * self.meshes
        self.ready = bytearray(3 * self.block)
        self.ready[:self.count] = b"\1" * self.count
        self.ready[2 * self.block - self.count:] = b"\1" * (self.block + self.count)
        self.heap: list[tuple[float, int, int]] = []
        self.number = 0
        self.ports: list[deque[int]] = [deque() for _ in range(2 * self.meshes)]
        self.reducing = [-2] * self.meshes  # -2 none, -1 all stages of the mesh, else a stage
        self.reduction_start = [0.0] * self.meshes
        self.updating = [False] * self.meshes

    def loop(self) -> Times:
        """Runs all events."""
        heap, meshes, first_reduction = self.heap, self.meshes, self.first_reduction
        for mesh in range(meshes):
            self.start_next(mesh, 0.0)
        # Ends: each event starts at most the tasks and transfers it makes possible, each of which runs once.
        while heap:
            now, _, code = heappop(heap)
            if code < meshes:
                self.computed(code, now)
            elif code < first_reduction:
                self.transferred(code, now)
            elif self.updating[code - first_reduction]:
                self.times.updates[code - first_reduction] = (self.times.updates[code - first_reduction][0], now)
            else:
                self.reduced(code, now)
        if any(at < len(order) for at, order in zip(self.position, self.order, strict=True)):
            ticks(self.schedule)  # says who waits for whom
        return self.times

    def at(self, time: float, code: int) -> None:
        """Adds an event."""
        self.number += 1
        heappush(self.heap, (time, self.number, code))

    def start_next(self, mesh: int, now: float) -> None:
        """Starts the mesh's next task if the mesh is idle and the task's input is there."""
        if self.busy[mesh]:
            return
        position = self.position[mesh]
        order = self.order[mesh]
        if position < len(order) and self.ready[order[position]]:
            self.busy[mesh] = True
            self.times.start[order[position]] = now
            self.number += 1
            heappush(self.heap, (now + self.durations.tasks[mesh][position], self.number, mesh))

    def computed(self, mesh: int, now: float) -> None:
        """A task's computation ends; a reduction inside the same executable holds its results back."""
        task = self.order[mesh][self.position[mesh]]
        self.times.end[task] = now
        if task in self.durations.reduce_in:
            self.reducing[mesh] = self.durations.reduce_in[task]
            self.reduce(mesh, now, self.durations.stage_on_network[self.reducing[mesh]])
        else:
            self.release(mesh, task, now)

    def release(self, mesh: int, task: int, now: float) -> None:
        """A task's result leaves the mesh, and the mesh goes on to its next task or to its update."""
        self.busy[mesh] = False
        self.position[mesh] += 1
        group = task // self.count
        peer = self.durations.peer[group]
        if peer >= -1:  # the result is needed
            if peer < 0 or not self.durations.transfer[group]:
                self.deliver(task, mesh if peer < 0 else peer, now)
            else:
                self.queue(self.meshes + task, 2 * mesh, 2 * peer + 1, now)
        if self.position[mesh] < len(self.order[mesh]):
            self.start_next(mesh, now)
        elif self.durations.reduce_at_end[mesh]:
            self.reducing[mesh] = -1
            self.reduce(mesh, now, self.durations.mesh_on_network[mesh])
        else:
            self.update(mesh, now)

    def deliver(self, task: int, mesh: int, now: float) -> None:
        """The task that needs a result may start: the next stage's forward pass, or the previous stage's backward
        pass."""
        self.ready[task + self.count if task < self.block else task - self.count] = 1
        self.start_next(mesh, now)

    def queue(self, code: int, out: int, into: int, now: float) -> None:
        """Asks for two ports."""
        self.ports[out].append(code)
        self.ports[into].append(code)
        if self.ports[out][0] == code and self.ports[into][0] == code:
            self.occupy(code, now)

    def occupy(self, code: int, now: float) -> None:
        """A transfer or reduction starts."""
        if code < self.first_reduction:
            task = code - self.meshes
            self.times.sent[task] = now
            self.number += 1
            heappush(self.heap, (now + self.durations.transfer[task // self.count], self.number, code))
        else:
            self.start_reduction(code, now)

    def transferred(self, code: int, now: float) -> None:
        """A transfer ends."""
        task = code - self.meshes
        group = task // self.count
        peer = self.durations.peer[group]
        self.times.arrived[task] = now
        self.free(2 * self.durations.mesh[group], 2 * peer + 1, now)
        self.deliver(task, peer, now)

    def free(self, out: int, into: int, now: float) -> None:
        """Two ports go on to the next transfer that waits."""
        ports = self.ports
        ports[out].popleft()
        ports[into].popleft()
        first = ports[out][0] if ports[out] else -1
        if first >= 0:
            self.try_occupy(first, now)
        if ports[into] and ports[into][0] != first:
            self.try_occupy(ports[into][0], now)

    def try_occupy(self, code: int, now: float) -> None:
        """Starts a transfer or reduction that is first at one port if it is first at the other too."""
        if code < self.first_reduction:
            group = (code - self.meshes) // self.count
            out, into = 2 * self.durations.mesh[group], 2 * self.durations.peer[group] + 1
        else:
            out = 2 * (code - self.first_reduction)
            into = out + 1
        if self.ports[out][0] == code and self.ports[into][0] == code:
            self.occupy(code, now)

    def reduce(self, mesh: int, now: float, on_network: bool) -> None:
        """A gradient reduction becomes ready."""
        code = self.first_reduction + mesh
        if on_network:
            self.queue(code, 2 * mesh, 2 * mesh + 1, now)
        else:
            self.start_reduction(code, now)

    def start_reduction(self, code: int, now: float) -> None:
        mesh = code - self.first_reduction
        stage = self.reducing[mesh]
        self.reduction_start[mesh] = now
        seconds = self.durations.reduce_at_end[mesh] if stage < 0 else self.durations.stage_reduction[stage]
        self.at(now + seconds, code)

    def reduced(self, code: int, now: float) -> None:
        """A reduction ends: the task that held it releases its result, or the update starts."""
        mesh = code - self.first_reduction
        stage = self.reducing[mesh]
        self.reducing[mesh] = -2
        self.times.reductions.append((mesh, stage, self.reduction_start[mesh], now))
        on_network = self.durations.mesh_on_network[mesh] if stage < 0 else self.durations.stage_on_network[stage]
        if on_network:
            self.free(2 * mesh, 2 * mesh + 1, now)
        if stage < 0:
            self.update(mesh, now)
        else:
            self.release(mesh, self.order[mesh][self.position[mesh]], now)

    def update(self, mesh: int, now: float) -> None:
        """The optimizer's step starts."""
        self.updating[mesh] = True
        self.times.updates[mesh] = (now, now)
        self.at(now + self.durations.update[mesh], self.first_reduction + mesh)
