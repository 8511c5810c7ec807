"""The processes of a pipeline outside of collectives: they agree, and watch each other."""

from collections.abc import Iterable

import jax

from hlorewrite.errors import HlorewriteError, PlanError
from hlorewrite.jaxbridge.processes.agreement import Agreement, Decision, Patience
from hlorewrite.jaxbridge.processes.consensus import agreement_of
from hlorewrite.jaxbridge.processes.liveness import Watch
from hlorewrite.jaxbridge.processes.notes import one_line, words_of_stages
from hlorewrite.pipelines.actions.order import OUTSIDE, Action
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program
from hlorewrite.pipelines.reshard.order import EFFORT_OF_A_RUN, solver_installed
from hlorewrite.pipelines.runtime.meshes import PlacedMeshes
from hlorewrite.pipelines.schedules import Task

_WITH, _WITHOUT = "ortools", "none"


class StepFailed(HlorewriteError):
    """A fragment or transfer failed while it ran."""


def begin(members: Iterable[int], timeout_s: float) -> Agreement | None:
    """Joins the next pipeline of some processes, and starts to watch them.

    Args:
      members: the processes with devices of the pipeline.
      timeout_s: how long to wait for a process, seconds.

    Returns:
      The agreement on what they run, which holds the watch; None when there is one process.

    Raises:
      PlanError: JAX's distributed runtime is not initialised.
    """
    numbers = sorted(set(members))
    agreement = agreement_of("pipeline", numbers, Patience(timeout_s, timeout_s))
    if agreement is not None:
        room = agreement.room.replace("/decide/", "/watch/")
        watch = Watch(room, dict.fromkeys(numbers, ""), jax.process_index(), agreement.store, timeout_s)
        agreement.watch = watch.start()
        agreement.come()
    return agreement


def meet(program: Program, meshes: PlacedMeshes, timeout_s: float) -> Agreement | None:
    """Begins the agreement of a program's processes.

    Args:
      program: the program.
      meshes: its meshes on devices.
      timeout_s: how long to wait for a process, seconds.

    Raises:
      PlanError: this process has no device of the program.
    """
    members = {device.process_index for device in meshes.devices.values()}
    if jax.process_index() not in members and len(members) > 1:
        raise PlanError(f"process {jax.process_index()} has no device of the program", location=program.name,
                        hint="use devices of every process that makes a driver in the program's meshes")
    return begin(members, timeout_s)


def settled(agreement: Agreement, program: Program, meshes: PlacedMeshes, mine: Decision) -> Watch | None:
    """Makes sure that all processes of a pipeline run the same program.

    Args:
      agreement: the agreement of its processes.
      program: the program.
      meshes: its meshes on devices.
      mine: what this process would run.

    Returns:
      The watch of the processes; None if nothing watches them.

    Raises:
      PlanError: a process failed, holds another program or does not arrive in time; the message names it.
    """
    if agreement.watch is None:
        return None
    agreement.watch.name_stages({process: words_of_stages([
        stage for stage, mesh in enumerate(program.mesh_of_stage()) if mesh and process in meshes.processes(mesh)])
        for process in agreement.members})
    if why := agreement.settle(mine):
        raise PlanError(why, location=program.name, hint="all stop: a pipeline has no unsplit form on its meshes")
    return agreement.watch


def step_failed(action: Action | None, error: Exception) -> StepFailed:
    """The error of an action as the user reads it."""
    step = action.step if action else None
    if isinstance(step, FragmentCall) and action is not None:
        what = f"@{step.callee} ({Task(step.task, step.stage, action.microbatch).words})" \
            if action.microbatch != OUTSIDE else f"@{step.callee} of stage {step.stage}"
    else:
        what = "a transfer" if step is not None else "the step"
    where = getattr(step, "where", "") or None
    return StepFailed(f"{what} failed ({one_line(error).rstrip('.')})", location=where,
                      hint="look at the first process that failed")


def solver_effort(agreement: Agreement | None) -> float:
    """The solver's limit in one run, the same on every process: none if the first process lacks the solver.

    Args:
      agreement: the agreement of the processes that plan; None if this one plans alone.

    Returns:
      Deterministic seconds, for ``SolverBudget``.

    Raises:
      PlanError: the first process has the solver and this one lacks it, or the first one does not arrive.
    """
    if agreement is None:
        return EFFORT_OF_A_RUN
    said, why = agreement.first_says("solver", _WITH if solver_installed() else _WITHOUT)
    if said == _WITH and not solver_installed():
        first = agreement.members[0]
        why = agreement.refuse(f"it lacks ortools, with which process {first} plans transfers", "planning")
    if why:
        raise PlanError(why, hint="install the same extras on every process")
    return EFFORT_OF_A_RUN if said == _WITH else 0.0
