"""Interleaved 1F1B: v chunks of the model on each mesh divide the bubble by v."""

from hlorewrite.errors import PlanError, UsageError
from hlorewrite.pipelines.schedules.schedule import Schedule, Task, build, check_sizes, looped


def interleaved_1f1b(meshes: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Interleaved 1F1B (Narayanan et al., SC 2021, section 2.2).

    Micro-batches go in groups of n through chunk 0, 1, ... of each mesh, and back in reverse. Mesh i runs
    2(n-i-1) + (v-1)n warm-up forwards, then one forward, one backward.

    Args:
      meshes: n, number of meshes; stage s runs on mesh s mod n.
      microbatches: m, a multiple of n.
      chunks: v, stages of each mesh.

    Returns:
      The schedule.

    Raises:
      UsageError: a number is below one.
      PlanError: n does not divide m.

    Example:
      >>> print(interleaved_1f1b(2, 2, 2).text())
      F0 F1 F0.1 F1.1 B0.1 B1.1 B0 B1
      F0 F1 F0.1 B0.1 F1.1 B1.1 B0 B1
    """
    if chunks < 1:
        raise UsageError(f"{chunks} chunks on each mesh", hint="use at least one chunk")
    check_sizes(meshes * chunks, microbatches)
    if microbatches % meshes:
        below = microbatches // meshes * meshes
        close = f"{below} or {below + meshes}" if below else f"{meshes}"
        raise PlanError(f"{microbatches} micro-batches do not fit interleaving over {meshes} stages: stage 0 would "
                        f"start micro-batch {below} without the others of its group of {meshes}",
                        hint=f"use {close} micro-batches")
    return build("interleaved-1f1b", microbatches, looped(meshes, chunks),
                 (_order(mesh, meshes, microbatches, chunks) for mesh in range(meshes)))


def _order(mesh: int, meshes: int, microbatches: int, chunks: int) -> list[Task]:
    total = microbatches * chunks

    def task(kind: str, k: int) -> Task:
        """The k-th forward or backward of this mesh."""
        group, rest = divmod(k, meshes * chunks)
        chunk = rest // meshes if kind == "F" else chunks - 1 - rest // meshes
        return Task(kind, chunk * meshes + mesh, group * meshes + rest % meshes)

    warm_up = min(total, 2 * (meshes - mesh - 1) + (chunks - 1) * meshes)
    tasks = [task("F", k) for k in range(warm_up)]
    for k in range(total - warm_up):
        tasks += [task("F", warm_up + k), task("B", k)]
    return tasks + [task("B", k) for k in range(total - warm_up, total)]
