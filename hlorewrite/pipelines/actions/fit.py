"""Whether a schedule fits a program: stages, meshes, micro-batches, whole or halved backward passes."""

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program
from hlorewrite.pipelines.schedules import Schedule, check, make_schedule

DEFAULT_SCHEDULE = "1f1b"


def schedule_for(program: Program, schedule: Schedule | str | None = None) -> Schedule | None:
    """The schedule a program runs by, checked against it.

    Args:
      program: the program.
      schedule: a schedule, the name of one, or None for the one the program names.

    Returns:
      The schedule; None when the program has no loop.

    Raises:
      PlanError: the schedule does not fit the program.
      UsageError: no schedule has this name.
    """
    if not program.iterations:
        return None
    if schedule is None or isinstance(schedule, str):
        names = program.mesh_of_stage()
        meshes = len(program.meshes) if "" in names else len(set(names))  # a stage without work is nowhere
        default = DEFAULT_SCHEDULE if program.stages == meshes else "interleaved-1f1b"
        name = schedule or program.schedule or default
        chunks, rest = divmod(program.stages, meshes)
        if rest:
            raise PlanError(f"{program.stages} stages on {meshes} meshes are not a whole number of stages for each",
                            location=program.name, hint="write your own schedule with custom_schedule")
        made = make_schedule(name, meshes, program.iterations, chunks if chunks > 1 or name == "interleaved-1f1b"
                             else None)
    else:
        made = check(schedule)
    check_fit(program, made)
    return made


def check_fit(program: Program, schedule: Schedule) -> None:
    """Refuses a schedule made for something else.

    Raises:
      PlanError: they differ in stages, micro-batches, in which stages share a mesh, or in halves of the backward.
    """
    where = program.name
    if schedule.stages != program.stages:
        raise PlanError(f"schedule {schedule.name} is for {schedule.stages} stages, but the program has "
                        f"{program.stages}", location=where, hint=f"use a schedule for {program.stages} stages")
    if schedule.microbatches != program.iterations:
        raise PlanError(f"schedule {schedule.name} is for {schedule.microbatches} micro-batches, but the program has "
                        f"{program.iterations}", location=where,
                        hint=f"make the schedule for {program.iterations} micro-batches")
    names: dict[int, str] = {}
    for stage, (mesh, name) in enumerate(zip(schedule.mesh_of, program.mesh_of_stage(), strict=True)):
        known = names.setdefault(mesh, name) if name else ""
        if name and known != name:
            raise PlanError(f"schedule {schedule.name} runs stage {stage} on the same mesh as stage "
                            f"{schedule.mesh_of.index(mesh)}, but in the program they are on {name} and {known}",
                            location=where, hint="place the stages as the schedule does, or use another schedule")
    if len(set(names.values())) < len(names):
        raise PlanError(f"schedule {schedule.name} is for {schedule.meshes} meshes, but the program's stages are on "
                        f"{len(set(names.values()))}", location=where,
                        hint="place the stages as the schedule does, or use another schedule")
    halved = any(task.kind in "IW" for order in schedule.orders for task in order)
    tasks = {step.task for step in program.body if isinstance(step, FragmentCall)}
    if halved and "B" in tasks and not tasks & {"I", "W"}:
        raise PlanError(f"schedule {schedule.name} splits the backward pass in two, but the program does not",
                        location=where, hint='use a schedule with undivided backward passes, such as "1f1b", or '
                                             "split them when the program is made")


def steps_by_task(program: Program, schedule: Schedule) -> dict[tuple[str, int], list[int]]:
    """Positions in the program's loop body that each kind of task of each stage runs, in the order of the text.

    A whole backward runs both halves of a program that has them. A stage without halves, as a first one whose input
    needs no gradient, runs its backward at the place of the input gradient.

    Args:
      program: the program.
      schedule: a schedule that fits.

    Returns:
      (kind, stage) -> positions in ``program.body``.
    """
    own: dict[tuple[str, int], list[int]] = {}
    for index, step in enumerate(program.body):
        if isinstance(step, FragmentCall):
            own.setdefault((step.task, step.stage), []).append(index)
    by_task: dict[tuple[str, int], list[int]] = {}
    for kind, stage in {(task.kind, task.stage) for order in schedule.orders for task in order}:
        mine = {"F": "F", "B": "BIW", "I": "BI", "W": "W"}[kind]
        by_task[kind, stage] = sorted(index for each in mine for index in own.get((each, stage), ()))
    return by_task
