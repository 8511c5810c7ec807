"""Converts a plan to flows: the devices that each slice passes through, and the shapes of its messages."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.pipelines.reshard.plan import ReshardPlan


@dataclass(frozen=True)
class SliceFlow:
    """One slice on its way, chunk by chunk.

    Args:
      start: first index of the slice, per dimension.
      extent: its size, per dimension.
      message: shape of a chunk, per dimension; at most the extent.
      devices: the first holder, then the receivers in chain order (positions in ``Network.devices``).
      forwarded: whether the first device has the slice in its destination buffer, not in its source.
      multicast: whether all receivers get a chunk at once instead of one after another.
    """

    start: tuple[int, ...]
    extent: tuple[int, ...]
    message: tuple[int, ...]
    devices: tuple[int, ...]
    forwarded: bool
    multicast: bool

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return math.prod(-(-e // m) for e, m in zip(self.extent, self.message, strict=True))

    def chunk_start(self, chunk: np.ndarray) -> np.ndarray:
        """First index of chunks, shape ``[chunks, rank]``; the last chunk of a dimension overlaps the one before it.

        Overlap sends some elements twice with the same value, so every message has one shape.
        """
        if not self.extent:  # a scalar is one chunk
            return np.zeros((len(chunk), 0), np.int64)
        counts = [-(-e // m) for e, m in zip(self.extent, self.message, strict=True)]
        where = np.unravel_index(chunk, counts)
        columns = [start + np.minimum(w * m, e - m) for start, w, m, e in
                   zip(self.start, where, self.message, self.extent, strict=True)]
        return np.stack(columns, axis=1)


def copies(plan: ReshardPlan, message_bytes: int) -> list[SliceFlow]:
    """The slices that devices of both meshes keep: copied from their source to their destination buffer.

    Args:
      plan: the plan.
      message_bytes: bytes of a chunk at most.

    Returns:
      One flow per device that keeps something, with that device alone.
    """
    tasks, network = plan.tasks, plan.network
    sources, destinations = tasks.source.tile_of_device(), tasks.destination.tile_of_device()
    out = []
    for device in sorted(sources.keys() & destinations.keys()):
        boxes = []
        for dim, (a, b) in enumerate(zip(tasks.source.cuts, tasks.destination.cuts, strict=True)):
            i = np.unravel_index(sources[device], tasks.source.grid)[dim]
            j = np.unravel_index(destinations[device], tasks.destination.grid)[dim]
            boxes.append((max(int(a[i]), int(b[j])), min(int(a[i + 1]), int(b[j + 1]))))
        extent = tuple(stop - start for start, stop in boxes)
        if min(extent, default=1) > 0:
            message = _fit(extent, plan.itemsize, message_bytes)
            out.append(SliceFlow(tuple(b[0] for b in boxes), extent, message, (int(network.index(np.array(device))),),
                                 False, False))
    return out


def flows(plan: ReshardPlan, message_bytes: int, multicast: bool) -> list[tuple[int, SliceFlow, tuple[int, ...]]]:
    """The flows of a plan in its order.

    Args:
      plan: the plan.
      message_bytes: bytes of a chunk at most.
      multicast: whether slices with several receivers are sent to all at once.

    Returns:
      Per flow (row, flow, rows it waits for). An all-gather is a ring: every part goes around.
    """
    if plan.rows.after:
        boxes = [(row, *box_of(plan, row)) for row in range(len(plan.rows))]
    else:
        boxes = joined(plan)
    shapes = messages([extent for _, _, extent in boxes], plan.itemsize, message_bytes)
    out: list[tuple[int, SliceFlow, tuple[int, ...]]] = []
    for (row, start, extent), shape in zip(boxes, shapes, strict=True):
        if plan.rows.gather[row]:
            out += _ring(plan, row, shapes)
            continue
        devices = (int(plan.sender[row]), *plan.receivers(row))
        out.append((row, SliceFlow(start, extent, shape, devices, False, multicast and len(devices) > 2), ()))
    return out


def joined(plan: ReshardPlan) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Slices to move: consecutive rows that go the same way and are adjacent in the tensor count as one.

    A plan may cut a slice into parts of different sizes, by when they arrive; messages of a module have one size.

    Args:
      plan: a plan without gathers.

    Returns:
      Per slice its first row, first index and size, in the order of the plan.
    """
    out: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
    latest: dict[tuple[str, int], int] = {}
    ways: list[tuple[int, tuple[int, ...]]] = []
    for row in range(len(plan.rows)):
        start, extent = box_of(plan, row)
        way = int(plan.sender[row]), tuple(plan.receivers(row))
        ends = ("out", way[0]), ("into", way[1][0])
        before = latest.get(ends[0], -1)
        if 0 <= before == latest.get(ends[1]) and ways[before] == way:
            first, *box = out[before]
            if (both := _side_by_side((box[0], box[1]), (start, extent))) is not None:
                out[before] = (first, *both)
                continue
        latest[ends[0]] = latest[ends[1]] = len(out)
        out.append((row, start, extent))
        ways.append(way)
    return out


def _side_by_side(box: tuple[tuple[int, ...], tuple[int, ...]], other: tuple[tuple[int, ...], tuple[int, ...]]
                  ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The first index and size of two boxes as one; None if they are not one."""
    (start, extent), (after, more) = min(box, other), max(box, other)
    apart = [dim for dim in range(len(start)) if (start[dim], extent[dim]) != (after[dim], more[dim])]
    if len(apart) != 1 or start[apart[0]] + extent[apart[0]] != after[apart[0]]:
        return None
    return start, tuple(size + (more[dim] if dim == apart[0] else 0) for dim, size in enumerate(extent))


def _ring(plan: ReshardPlan, row: int,
          shapes: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, SliceFlow, tuple[int, ...]]]:
    parts, members = plan.rows.after[row], plan.receivers(row)
    for part in parts:
        start, extent = box_of(plan, part)
        at = members.index(plan.receivers(part)[0])
        yield row, SliceFlow(start, extent, shapes[part], tuple(members[at:] + members[:at]), True, False), parts


def box_of(plan: ReshardPlan, row: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """First index and size of a row's slice, per dimension."""
    start, stop = plan.rows.start[row].tolist(), plan.rows.stop[row].tolist()
    return tuple(start), tuple(b - a for a, b in zip(start, stop, strict=True))


def messages(extents: Sequence[tuple[int, ...]], itemsize: int, limit: int) -> list[tuple[int, ...]]:
    """The message shape of each slice: one for all if that costs little, otherwise one per extent."""
    if not extents:
        return []
    every = np.array(extents, np.int64).reshape(len(extents), -1)
    common = _fit(tuple(every.min(axis=0).tolist()), itemsize, limit)
    sent = np.prod(-(-every // np.array(common, np.int64)), axis=1) * math.prod(common)
    if sent.sum() <= 1.02 * np.prod(every, axis=1).sum():
        return [common] * len(extents)
    shapes = {extent: _fit(extent, itemsize, limit) for extent in set(extents)}
    return [shapes[extent] for extent in extents]


def _fit(extent: tuple[int, ...], itemsize: int, limit: int) -> tuple[int, ...]:
    """The largest even chunk of a box within the limit, cut along leading dimensions first."""
    shape = list(extent)
    for dim in range(len(shape)):
        size = math.prod(shape) * itemsize
        if size <= limit:
            break
        pieces = min(shape[dim], -(-size // max(limit, 1)))
        shape[dim] = -(-shape[dim] // pieces)
    return tuple(shape)
