"""Pipeline schedules: for each mesh, the order in which it runs its stages' tasks.

A *stage* is a part of the model in model order; a *mesh* runs one stage, or several (then called its chunks). Tasks:
``F`` forward, ``B`` backward, or the backward split in two: ``I`` gradient of the input, which the stage before
waits for, and ``W`` gradient of the weights, which nothing waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from hlorewrite.errors import PlanError, UsageError

if TYPE_CHECKING:
    import numpy as np

KINDS = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}
"""Kinds of tasks and their names in errors."""

ROW = {"F": 0, "B": 1, "I": 1, "W": 2}
"""Where a kind is in arrays of shape [3, stages, micro-batches]: ``B`` and ``I`` send the gradient upstream."""

MOST_FORWARDS = 2_000_000


class Task(NamedTuple):
    """One run of one stage on one micro-batch.

    Args:
      kind: ``F``, ``B``, ``I`` or ``W``.
      stage: the stage, from 0, in model order.
      microbatch: the micro-batch, from 0.
    """

    kind: str
    stage: int
    microbatch: int

    @property
    def words(self) -> str:
        """The task as errors name it.

        Example:
          >>> Task("B", 2, 5).words
          'the backward of micro-batch 5 on stage 2'
        """
        return f"the {KINDS[self.kind]} of micro-batch {self.microbatch} on stage {self.stage}"

    @property
    def label(self) -> str:
        """The task in short, without its stage: ``F5``."""
        return f"{self.kind}{self.microbatch}"


@dataclass(frozen=True)
class Schedule:
    """The order of tasks on every mesh.

    Args:
      name: what the schedule is called.
      microbatches: m, number of micro-batches.
      mesh_of: the mesh each stage runs on, shape ``[stages]``.
      orders: the tasks of each mesh in the order it runs them.

    Example:
      >>> row = (Task("F", 0, 0), Task("B", 0, 0))
      >>> Schedule("custom", 1, (0,), (row,)).text()
      'F0 B0'
    """

    name: str
    microbatches: int
    mesh_of: tuple[int, ...]
    orders: tuple[tuple[Task, ...], ...]

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.mesh_of)

    @property
    def meshes(self) -> int:
        """Number of meshes."""
        return len(self.orders)

    def stages_of(self, mesh: int) -> list[int]:
        """The stages a mesh runs, in model order."""
        return [stage for stage, where in enumerate(self.mesh_of) if where == mesh]

    @cached_property
    def numbers(self) -> tuple[np.ndarray, ...]:
        """Each mesh's tasks as positions in a flattened array [3, stages, micro-batches]; see ``ROW``."""
        import numpy as np
        stages, count = self.stages, self.microbatches
        base = {kind: row * stages * count for kind, row in ROW.items()}
        return tuple(np.array([base[kind] + stage * count + microbatch for kind, stage, microbatch in order],
                              dtype=np.int64) for order in self.orders)

    def text(self) -> str:
        """The schedule as the table that :func:`hlorewrite.pipelines.schedules.custom_schedule` reads."""
        chunks = {stage: self.stages_of(mesh).index(stage) for stage, mesh in enumerate(self.mesh_of)}
        return "\n".join(" ".join(task.label + (f".{chunks[task.stage]}" if chunks[task.stage] else "")
                                  for task in order) for order in self.orders)

    def last_gradient(self) -> list[Task]:
        """The task of each stage after which its weight gradients are complete, shape ``[stages]``."""
        last: dict[int, Task] = {}
        for order in self.orders:
            last.update((task.stage, task) for task in order if task.kind in "BW")
        return [last[stage] for stage in range(self.stages)]


def looped(meshes: int, chunks: int) -> tuple[int, ...]:
    """Stages go round the meshes: stage s runs on mesh s mod n.

    Example:
      >>> looped(2, 2)
      (0, 1, 0, 1)
    """
    return tuple(stage % meshes for stage in range(meshes * chunks))


def folded(meshes: int) -> tuple[int, ...]:
    """Stages go down the meshes and up again: mesh i has stages i and 2n-1-i.

    Example:
      >>> folded(2)
      (0, 1, 1, 0)
    """
    return (*range(meshes), *reversed(range(meshes)))


def build(name: str, microbatches: int, mesh_of: Sequence[int], orders: Iterable[Iterable[Task]]) -> Schedule:
    """A schedule from any sequences."""
    return Schedule(name, microbatches, tuple(mesh_of), tuple(tuple(order) for order in orders))


def check_sizes(meshes: int, microbatches: int) -> None:
    """Refuses pipelines without stages or micro-batches, and those too large to write down.

    Raises:
      UsageError: a number is below one.
      PlanError: there are more than ten million forwards.
    """
    if meshes < 1:
        raise UsageError(f"a pipeline of {meshes} stages", hint="use at least one stage")
    if microbatches < 1:
        raise UsageError(f"a pipeline with {microbatches} micro-batches", hint="use at least one micro-batch")
    if meshes * microbatches > MOST_FORWARDS:
        raise PlanError(f"{meshes} stages times {microbatches} micro-batches are {meshes * microbatches} forwards",
                        hint=f"at most {MOST_FORWARDS} can be scheduled")


def refuse_chunks(name: str, chunks: int, needed: int = 1) -> None:
    """Refuses a number of chunks that a schedule has no use for.

    Raises:
      PlanError: it is not ``needed``.
    """
    if chunks != needed:
        raise PlanError(f"{name} runs {needed} chunk{'s' if needed > 1 else ''} on each mesh, not {chunks}",
                        hint=f'drop the chunks, or use "interleaved-1f1b" for {chunks}' if chunks > 1
                        else f"use {needed} chunks")
