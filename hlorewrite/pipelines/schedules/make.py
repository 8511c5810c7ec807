"""Schedules by name."""

from collections.abc import Callable

from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.pipelines.schedules.dualpipe_v import dualpipe_v
from hlorewrite.pipelines.schedules.interleaved import interleaved_1f1b
from hlorewrite.pipelines.schedules.linear import eager_1f1b, gpipe, one_f_one_b, zb_h1, zb_h2
from hlorewrite.pipelines.schedules.schedule import Schedule, refuse_chunks

_BY_NAME: dict[str, Callable[[int, int], Schedule]] = {
    "gpipe": gpipe, "1f1b": one_f_one_b, "eager-1f1b": eager_1f1b, "zb-h1": zb_h1, "zb-h2": zb_h2,
    "dualpipe-v": dualpipe_v}

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
        return interleaved_1f1b(meshes, microbatches, 2 if chunks is None else chunks)
    if name not in _BY_NAME:
        raise UsageError(f'there is no schedule "{name}"', hint=did_you_mean(name, SCHEDULES))
    if chunks is not None:
        refuse_chunks(name, chunks, 2 if name == "dualpipe-v" else 1)
    return _BY_NAME[name](meshes, microbatches)
