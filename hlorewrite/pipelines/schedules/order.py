"""Runs a schedule's order without resources: earliest times, ticks, and where it gets stuck."""

from collections.abc import Sequence

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.schedules.schedule import Schedule, Task


def earliest(schedule: Schedule, seconds: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Start and end of every task when communication is free.

    A task starts when its mesh has done the tasks before it and its stage's input is there: the forward of the stage
    before, or the input gradient of the stage after.

    Args:
      schedule: the schedule.
      seconds: duration of every task of every mesh, in the mesh's order.

    Returns:
      Start and end, each flattened from [3, stages, micro-batches]; see ``schedule.ROW``.

    Raises:
      PlanError: the order deadlocks; the message names a stage and a micro-batch.

    Example:
      >>> from hlorewrite.pipelines.schedules import one_f_one_b
      >>> schedule = one_f_one_b(2, 2)
      >>> max(earliest(schedule, [[1.0] * 4] * 2)[1])
      6.0
    """
    stages, count = schedule.stages, schedule.microbatches
    block = stages * count
    start, end = [0.0] * (3 * block), [-1.0] * (3 * block)
    numbers = [each.tolist() for each in schedule.numbers]
    mesh_of = schedule.mesh_of
    position, clock = [0] * schedule.meshes, [0.0] * schedule.meshes
    todo = list(range(schedule.meshes))
    # Ends: a mesh comes back only when a task has been placed, and each is placed once.
    while todo:
        mesh = todo.pop()
        mine, times, at, now = numbers[mesh], seconds[mesh], position[mesh], clock[mesh]
        # Ends: each round places a task, or leaves the mesh waiting.
        while at < len(mine):
            task = mine[at]
            needs = producer(task, stages, count)
            if needs >= 0:
                ready = end[needs]
                if ready < 0:
                    break
                if ready > now:
                    now = ready
            start[task] = now
            now += times[at]
            end[task] = now
            at += 1
            if task < block - count:
                todo.append(mesh_of[task // count + 1])
            elif block + count <= task < 2 * block:
                todo.append(mesh_of[(task - block) // count - 1])
        position[mesh], clock[mesh] = at, now
    if any(at < len(mine) for at, mine in zip(position, numbers, strict=True)):
        raise _stuck(schedule, position, end)
    return start, end


def producer(task: int, stages: int, microbatches: int) -> int:
    """The task of another stage that a task waits for, as a flat position; -1 when there is none."""
    block = stages * microbatches
    if task < block:
        return task - microbatches if task >= microbatches else -1
    return task + microbatches if task < 2 * block - microbatches else -1


def ticks(schedule: Schedule) -> list[int]:
    """The tick of each task when every task takes one and transfers take none, by flat position.

    Raises:
      PlanError: the order deadlocks.

    Example:
      >>> from hlorewrite.pipelines.schedules import gpipe
      >>> ticks(gpipe(2, 1))[:2]
      [0, 1]
    """
    start, _ = earliest(schedule, [[1.0] * len(order) for order in schedule.orders])
    return [int(at) for at in start]


def _stuck(schedule: Schedule, position: Sequence[int], end: Sequence[float]) -> PlanError:
    """Follows who waits for whom until a mesh comes up twice."""
    stages, count = schedule.stages, schedule.microbatches
    mesh = next(i for i, at in enumerate(position) if at < len(schedule.orders[i]))
    seen: list[int] = []
    # Ends: a mesh is added once.
    while mesh not in seen:
        seen.append(mesh)
        needs = producer(int(schedule.numbers[mesh][position[mesh]]), stages, count)
        mesh = schedule.mesh_of[needs % (stages * count) // count]
    ring = seen[seen.index(mesh):]
    waits = [schedule.orders[i][position[i]] for i in ring]
    first = waits[0]
    needed = _needed(first)
    if len(ring) == 1:
        return PlanError(f"the schedule deadlocks: {first.words} comes before {needed.words}, which it waits for",
                         hint=f"move {needed.label} before {first.label} on mesh {mesh}")
    chain = ", ".join(f"stage {task.stage} waits with {task.label}" for task in waits)
    return PlanError(f"the schedule deadlocks: {first.words} waits for {needed.words}, in a cycle ({chain})",
                     hint=f"move {needed.label} forward on mesh {ring[1]}, or {first.label} back on mesh {ring[0]}")


def _needed(task: Task) -> Task:
    step = -1 if task.kind == "F" else 1
    return task._replace(kind="F" if task.kind == "F" else "B", stage=task.stage + step)
