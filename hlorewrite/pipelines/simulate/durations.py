"""Durations of a schedule's tasks, transfers and reductions, laid out for the simulation's inner loops."""

from dataclasses import dataclass

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.schedules import ROW, Schedule
from hlorewrite.pipelines.simulate.cost import PipelineCost


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
