"""Checks a schedule before anything runs: complete, in order, free of deadlock, within its memory bound."""

from collections.abc import Sequence

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.schedules.schedule import KINDS, Schedule, Task


def check(schedule: Schedule, most_live: int | None = None) -> Schedule:
    """The schedule itself, if it can run.

    Args:
      schedule: the schedule.
      most_live: the most micro-batches that may be alive on a mesh, all its stages together.

    Returns:
      The schedule.

    Raises:
      PlanError: a task is missing, doubled, on the wrong mesh or before what it needs, the order deadlocks, or
        too many micro-batches are alive; the message names stage and micro-batch.

    Example:
      >>> from hlorewrite.pipelines.schedules import custom_schedule, gpipe
      >>> check(gpipe(2, 4)).name
      'gpipe'
      >>> check(custom_schedule("F0 F1 B0"))
      Traceback (most recent call last):
      ...
      hlorewrite.errors.PlanError: the backward of micro-batch 1 on stage 0 never runs; add B1 to mesh 0
    """
    for mesh in range(schedule.meshes):
        _check_mesh(schedule, mesh)
    earliest(schedule, [[1.0] * len(order) for order in schedule.orders])
    if most_live is not None:
        _check_memory(schedule, most_live)
    return schedule


def _check_mesh(schedule: Schedule, mesh: int) -> None:
    """Every task of the mesh's stages once, each after what it needs on the same stage."""
    done: dict[tuple[int, int], str] = {}
    for task in schedule.orders[mesh]:
        kind, stage, microbatch = task
        if not (0 <= stage < schedule.stages and schedule.mesh_of[stage] == mesh):
            raise PlanError(f"{task.words} is on mesh {mesh}",
                            hint=f"mesh {mesh} runs stages {', '.join(map(str, schedule.stages_of(mesh)))}")
        if not 0 <= microbatch < schedule.microbatches:
            raise PlanError(f"{task.words} is beyond the {schedule.microbatches} micro-batches",
                            hint=f"use 0 to {schedule.microbatches - 1}")
        before = done.get((stage, microbatch), "")
        if kind in before:
            raise PlanError(f"{task.words} runs twice", hint=f"drop one {task.label} of mesh {mesh}")
        if kind not in _NEXT[before]:
            raise _misplaced(task, before, mesh)
        done[stage, microbatch] = before + kind
    for stage in schedule.stages_of(mesh):
        for microbatch in range(schedule.microbatches):
            tasks = done.get((stage, microbatch), "")
            if tasks not in ("FB", "FIW"):
                missing = Task({"": "F", "F": "B", "FI": "W"}[tasks], stage, microbatch)
                raise PlanError(f"{missing.words} never runs", hint=f"add {missing.label} to mesh {mesh}")


# What may follow after the tasks already done on a stage for a micro-batch.
_NEXT = {"": "F", "F": "BI", "FI": "W", "FB": "", "FIW": ""}


def _misplaced(task: Task, before: str, mesh: int) -> PlanError:
    if before in ("FB", "FIW", "FI"):
        return PlanError(f"{task.words} runs after its backward pass",
                         hint=f"use either B, or I and W; drop {task.label} of mesh {mesh}")
    needed = task._replace(kind="I" if task.kind == "W" and before else "F")
    return PlanError(f"{task.words} runs before its {KINDS[needed.kind]}",
                     hint=f"move {needed.label} before {task.label} on mesh {mesh}")


def live(schedule: Schedule) -> list[list[int]]:
    """Micro-batches alive on each mesh after each of its tasks: the forward pass has begun, and the weight gradient is
    not yet there.

    Args:
      schedule: the schedule.

    Returns:
      Per mesh one count a task; micro-batches of several stages count each.

    Example:
      >>> from hlorewrite.pipelines.schedules import one_f_one_b
      >>> live(one_f_one_b(2, 2))[0]
      [1, 2, 1, 0]
    """
    live_counts = []
    for order in schedule.orders:
        count, counts = 0, []
        for task in order:
            count += {"F": 1, "B": -1, "I": 0, "W": -1}[task.kind]
            counts.append(count)
        live_counts.append(counts)
    return live_counts


def peak_live(schedule: Schedule) -> list[int]:
    """The largest number of micro-batches alive on each mesh at a time.

    Example:
      >>> from hlorewrite.pipelines.schedules import eager_1f1b, one_f_one_b
      >>> peak_live(one_f_one_b(4, 8)), peak_live(eager_1f1b(4, 8))
      ([4, 3, 2, 1], [7, 5, 3, 1])
    """
    return [max(counts, default=0) for counts in live(schedule)]


def _check_memory(schedule: Schedule, most_live: int) -> None:
    for mesh, counts in enumerate(live(schedule)):
        for task, count in zip(schedule.orders[mesh], counts, strict=True):
            if count > most_live:
                raise PlanError(f"{task.words} makes {count} micro-batches alive on mesh {mesh}; the bound is "
                                f"{most_live}", hint='use a schedule with fewer forwards ahead, such as "1f1b", '
                                                     "or raise the bound")


# ---- runs a schedule's order without resources: earliest times, ticks, and where it gets stuck


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
