"""Schedules by name, or from a small table."""

import re
from collections.abc import Callable

from hlorewrite.errors import PlanError, UsageError, did_you_mean
from hlorewrite.pipelines.schedules import published
from hlorewrite.pipelines.schedules.schedule import Schedule, Task, build, folded, looped, refuse_chunks

_BY_NAME: dict[str, Callable[[int, int], Schedule]] = {
    "gpipe": published.gpipe, "1f1b": published.one_f_one_b, "eager-1f1b": published.eager_1f1b,
    "zb-h1": published.zb_h1, "zb-h2": published.zb_h2, "dualpipe-v": published.dualpipe_v}

SCHEDULES = (*_BY_NAME, "interleaved-1f1b")
"""Names of the schedules that :func:`make_schedule` builds."""


def make_schedule(name: str, meshes: int, microbatches: int, chunks: int | None = None) -> Schedule:
    """A schedule by name.

    Args:
      name: one of ``SCHEDULES``.
      meshes: n, number of meshes.
      microbatches: m.
      chunks: v, stages on each mesh: free for ``interleaved-1f1b`` (default 2), 2 for ``dualpipe-v``, else 1.

    Returns:
      The schedule, which runs: it needs no check.

    Raises:
      UsageError: the name is unknown, or a number is below one.
      PlanError: the micro-batches or chunks do not fit the schedule.

    Example:
      >>> make_schedule("zb-h1", 4, 8).meshes
      4
      >>> make_schedule("1f2b", 4, 8)
      Traceback (most recent call last):
      ...
      hlorewrite.errors.UsageError: there is no schedule "1f2b"; did you mean "1f1b"?
    """
    if name == "interleaved-1f1b":
        return published.interleaved_1f1b(meshes, microbatches, 2 if chunks is None else chunks)
    if name not in _BY_NAME:
        raise UsageError(f'there is no schedule "{name}"', hint=did_you_mean(name, SCHEDULES))
    if chunks is not None:
        refuse_chunks(name, chunks, 2 if name == "dualpipe-v" else 1)
    return _BY_NAME[name](meshes, microbatches)


# ---- schedules from a small table: one line per mesh, its tasks in order


_TASK = re.compile(r"([FBIW])(\d+)(?:\.(\d+))?")


def custom_schedule(table: str, name: str = "custom", where: str | None = None) -> Schedule:
    """Reads a schedule from text.

    One line for each mesh; tasks are ``F``, ``B``, ``I`` or ``W`` with the number of the micro-batch, and
    ``.CHUNK`` where a mesh has several stages: ``F0 F1 B0.1``. ``#`` starts a comment. Chunk c of mesh i is stage
    c*n + i; a line ``placement v`` folds two chunks into a V instead: stages i and 2n-1-i.

    Args:
      table: the text.
      name: what the schedule is called.
      where: the file it was read from, for errors.

    Returns:
      The schedule, not yet checked: see :func:`hlorewrite.pipelines.schedules.check`.

    Raises:
      PlanError: a word is not a task; the message names line and word.

    Example:
      >>> schedule = custom_schedule("F0 F1 B0 B1  # first stage \\n F0 B0 F1 B1")
      >>> schedule.meshes, schedule.microbatches, schedule.orders[1][1]
      (2, 2, Task(kind='B', stage=1, microbatch=0))
    """
    rows: list[list[tuple[str, int, int]]] = []
    fold = False
    for number, line in enumerate(table.splitlines(), 1):
        words = line.partition("#")[0].split()
        at = f"{where or name}:{number}"
        if words[:1] == ["placement"]:
            if words[1:] not in (["v"], ["loop"]):
                raise PlanError(f'"{" ".join(words)}" is not a placement', location=at,
                                hint='write "placement v" or "placement loop"')
            fold = words[1] == "v"
        elif words:
            rows.append([_task(word, at) for word in words])
    if not rows:
        raise PlanError("the table has no line of tasks", location=where or name,
                        hint='write one line for each stage, such as "F0 F1 B0 B1"')
    meshes = len(rows)
    chunks = 1 + max(chunk for row in rows for _, _, chunk in row)
    if fold and chunks != 2:
        raise PlanError(f"placement v has two chunks on each mesh, but the table has {chunks}", location=where or name,
                        hint='write chunks 0 and 1, or drop "placement v"')
    count = 1 + max(microbatch for row in rows for _, microbatch, _ in row)
    place = folded(meshes) if fold else looped(meshes, chunks)

    def stage(mesh: int, chunk: int) -> int:
        return 2 * meshes - 1 - mesh if fold and chunk else chunk * meshes + mesh

    return build(name, count, place, ([Task(kind, stage(mesh, chunk), k) for kind, k, chunk in row]
                                      for mesh, row in enumerate(rows)))


def _task(word: str, at: str) -> tuple[str, int, int]:
    match = _TASK.fullmatch(word)
    if not match:
        raise PlanError(f'"{word}" is not a task', location=at,
                        hint='write F, B, I or W and the micro-batch, such as "F0", or "B3.1" for chunk 1')
    return match[1], int(match[2]), int(match[3] or 0)
