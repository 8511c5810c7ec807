"""Sends and receives between the tasks: per mesh one list of instructions that blocking transfers cannot deadlock.

A transfer blocks both its meshes until both have come to it. Any order that is the same on all meshes is safe: a
transfer is placed at the tick that produces it, transfers of one tick by direction, stage and micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.schedules.check import ticks
from hlorewrite.pipelines.schedules.schedule import Schedule, Task

if TYPE_CHECKING:
    import numpy as np


class ScheduleInstruction(NamedTuple):
    """The next action of a mesh.

    Args:
      op: ``run``, ``send`` or ``receive``.
      task: the task that runs, or whose result is sent.
      peer: the other mesh; -1 for ``run``.
    """

    op: str
    task: Task
    peer: int


def instructions(schedule: Schedule) -> list[list[ScheduleInstruction]]:
    """The instructions of each mesh, in an order free of deadlock even if transfers block.

    Args:
      schedule: a schedule that passes :func:`hlorewrite.pipelines.schedules.check`.

    Returns:
      One list for each mesh.

    Example:
      >>> from hlorewrite.pipelines.schedules import gpipe
      >>> for row in instructions(gpipe(2, 1)):
      ...     print(" ".join(f"{each.op} {each.task.label}" for each in row))
      run F0 send F0 receive B0 run B0
      receive F0 run F0 run B0 send B0
    """
    named: dict[int, Task] = {}
    for numbers, order in zip(schedule.numbers, schedule.orders, strict=True):
        named.update(zip(numbers.tolist(), order, strict=True))
    lists: list[list[ScheduleInstruction]] = [[] for _ in range(schedule.meshes)]
    numbers, meshes, peers = sequence(schedule)
    for number, mesh, peer in zip(numbers.tolist(), meshes.tolist(), peers.tolist(), strict=True):
        task = named[number]
        if peer < 0:
            lists[mesh].append(ScheduleInstruction("run", task, -1))
        else:
            lists[mesh].append(ScheduleInstruction("send", task, peer))
            lists[peer].append(ScheduleInstruction("receive", task, mesh))
    return lists


def sequence(schedule: Schedule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All tasks and all transfers in one order that every mesh keeps.

    Args:
      schedule: the schedule.

    Returns:
      Task (flat position, see ``ROW``), its mesh, and the mesh its result goes to (-1 for a run), each of shape
      [tasks + transfers].
    """
    import numpy as np
    numbers = np.concatenate(schedule.numbers)
    meshes = np.repeat(np.arange(schedule.meshes), [len(each) for each in schedule.numbers])
    peer = peers(schedule)[numbers // schedule.microbatches]
    sent = peer >= 0
    at = np.array(ticks(schedule), np.int64)
    number = np.concatenate([numbers, numbers[sent]])
    transfer = np.repeat([0, 1], [len(numbers), int(sent.sum())])
    order = np.lexsort((number, transfer, at[number]))
    return (number[order], np.concatenate([meshes, meshes[sent]])[order],
            np.concatenate([np.full(len(numbers), -1), peer[sent]])[order])


def peers(schedule: Schedule) -> np.ndarray:
    """The mesh each task's result is sent to, shape [3 * stages]; -1 when no other mesh needs it.

    Example:
      >>> from hlorewrite.pipelines.schedules import gpipe
      >>> peers(gpipe(2, 1)).reshape(3, 2).tolist()
      [[1, -1], [-1, 0], [-1, -1]]
    """
    import numpy as np
    stages = schedule.stages
    where = np.array(schedule.mesh_of)
    neighbours = np.full((3, stages), -1)
    neighbours[0, :-1], neighbours[1, 1:] = where[1:], where[:-1]
    neighbours[neighbours == where] = -1
    return neighbours.reshape(-1)


def check_transfers(lists: Sequence[Sequence[ScheduleInstruction]]) -> None:
    """Runs the instructions with transfers that block, and refuses lists that get stuck.

    Args:
      lists: the instructions of each mesh.

    Raises:
      PlanError: two meshes wait for each other; the message names stage and micro-batch.

    Example:
      >>> from hlorewrite.pipelines.schedules import one_f_one_b
      >>> check_transfers(instructions(one_f_one_b(4, 8)))
    """
    position = [0] * len(lists)
    todo = list(range(len(lists)))
    # Ends: a mesh comes back only when its position has moved on.
    while todo:
        mesh = todo.pop()
        # Ends: each round moves the position on, or leaves the mesh waiting.
        while position[mesh] < len(lists[mesh]):
            here = lists[mesh][position[mesh]]
            if here.op != "run":
                there = lists[here.peer][position[here.peer]] if position[here.peer] < len(lists[here.peer]) else None
                if there is None or there.op in (here.op, "run") or there.task != here.task or there.peer != mesh:
                    break
                position[here.peer] += 1
                todo.append(here.peer)
            position[mesh] += 1
    for mesh, (at, rows) in enumerate(zip(position, lists, strict=True)):
        if at < len(rows):
            op, task, peer = rows[at]
            other = lists[peer][position[peer]] if position[peer] < len(lists[peer]) else None
            does = f"waits to {other.op} that of {other.task.words}" if other else "has ended"
            raise PlanError(f"the transfers deadlock: mesh {mesh} waits to {op} the result of {task.words}, while mesh "
                            f"{peer} {does}", hint="put the transfers in the same order on both meshes")
