"""What the processes of a pipeline have to do with each other in addition to collectives: agree, watch, exchange a
value."""

from __future__ import annotations

import hashlib

import jax
import numpy as np

from hlorewrite.errors import HlorewriteError, PlanError, UsageError
from hlorewrite.jaxbridge.processes.peers import agree
from hlorewrite.jaxbridge.processes.same_module import COMPARISONS
from hlorewrite.jaxbridge.processes.watch import Watch, told, words_of_stages
from hlorewrite.jaxbridge.runtime.meshes import PlacedMeshes, numpy_type
from hlorewrite.jaxbridge.xla.private import distributed_client
from hlorewrite.mpmd.program import FragmentCall, Program
from hlorewrite.mpmd.types import MeshTensor
from hlorewrite.plan.program.order import OUTSIDE, Action
from hlorewrite.plan.schedules import Task


class StepFailed(HlorewriteError):
    """A fragment or transfer failed while it ran."""


def watch_processes(program: Program, meshes: PlacedMeshes, digest: str, timeout_s: float) -> Watch | None:
    """Makes sure that all processes of a pipeline run the same, and starts to watch them.

    Args:
      program: the program.
      meshes: its meshes on devices.
      digest: of program, schedule, plans and versions.
      timeout_s: how long to wait for a process, seconds.

    Returns:
      The watch; None when there is one process.

    Raises:
      PlanError: a process has another digest or does not come in time; the message names it.
    """
    members = sorted({device.process_index for device in meshes.devices.values()})
    if len(members) < 2:
        return None
    if jax.process_index() not in members:
        raise PlanError(f"process {jax.process_index()} has no device of the program", location=program.name,
                        hint="give the program's meshes devices of every process that makes a driver")
    stages = {process: words_of_stages([stage for stage, mesh in enumerate(program.mesh_of_stage())
                                        if mesh and process in meshes.processes(mesh)]) for process in members}
    everyone = hashlib.sha256(repr(members).encode()).hexdigest()[:12]
    room = f"hlorewrite/pipeline/{everyone}/{COMPARISONS.next(everyone)}"
    watch = Watch(room, stages, jax.process_index(), distributed_client(), timeout_s).start()
    agree("pipeline", digest, members, timeout_s, stages)
    return watch


def step_failed(action: Action | None, error: Exception) -> StepFailed:
    """The error of an action as it is reported to the user."""
    step = action.step if action else None
    if isinstance(step, FragmentCall) and action is not None:
        what = f"@{step.callee} ({Task(step.task, step.stage, action.microbatch).words})" \
            if action.microbatch != OUTSIDE else f"@{step.callee} of stage {step.stage}"
    else:
        what = "a transfer" if step is not None else "the step"
    where = getattr(step, "where", "") or None
    return StepFailed(f"{what} failed ({told(error).rstrip('.')})", location=where,
                      hint="look at the first process that failed")


def fetch_value(name: str, result: jax.Array | None, type_: MeshTensor, owners: tuple[int, ...], watch: Watch | None,
                timeout_s: float) -> np.ndarray:
    """A value of one mesh on every process.

    Args:
      name: of the value, for errors.
      result: the array, where this process has a part of it.
      type_: its type.
      owners: the processes that have it.
      watch: of the processes; None when there is one.
      timeout_s: how long to wait for it, seconds.

    Returns:
      The value.

    Raises:
      UsageError: no process has all of it.
      PlanError: it does not come in time.
    """
    whole = result is not None and (result.is_fully_addressable or result.is_fully_replicated)
    if watch is None or (result is not None and not whole):
        if not whole or result is None:
            raise UsageError(f"{name} is cut over several processes", hint="gather it first, or read its shards")
        return np.asarray(result)
    key = f"{watch.room.replace('/pipeline/', '/values/')}/{name}/{COMPARISONS.next(watch.room + name)}"
    if result is not None:
        value = np.asarray(result if result.is_fully_addressable else result.addressable_data(0))
        if jax.process_index() == owners[0]:
            watch.store.key_value_set_bytes(key, value.tobytes())
        return value
    try:
        data = watch.store.blocking_key_value_get_bytes(key, round(timeout_s * 1000))
    except jax.errors.JaxRuntimeError as error:
        raise PlanError(f"{name} did not come from process {owners[0]} within {timeout_s:g} s",
                        hint="let every process fetch it, and allow for the time of a step") from error
    return np.frombuffer(data, numpy_type(type_)).reshape(type_.shape)
