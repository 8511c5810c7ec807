"""Checks a schedule before anything runs: complete, in order, free of deadlock, within its memory bound."""

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.schedules.order import earliest
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
