"""From a plan to rounds of messages: what each device sends and receives, step by step.

A message is one chunk on one hop. In a round every device sends at most one message and receives at most one.
A chain of n receivers with K chunks is n hops, each K rounds long and one round after the one before.
Rounds order the program; devices without a message in a round do not wait for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.errors import PlanError
from hlorewrite.plan.reshard.plan import ReshardPlan

MOST_HOPS = 50_000


@dataclass(frozen=True)
class SliceFlow:
    """One slice on its way, chunk by chunk.

    Args:
      start: first index of the slice, per dimension.
      extent: its size, per dimension.
      message: shape of a chunk, per dimension; at most the extent.
      devices: who has it first, then who gets it in chain order (positions in ``Network.devices``).
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
        """First index of chunks, shape ``[chunks, rank]``; the last of a dimension overlaps the one before.

        Overlap sends some elements twice with the same value, so every message has one shape.
        """
        counts = [-(-e // m) for e, m in zip(self.extent, self.message, strict=True)]
        where = np.unravel_index(chunk, counts)
        columns = [start + np.minimum(w * m, e - m) for start, w, m, e in
                   zip(self.start, where, self.message, self.extent, strict=True)]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Hop:
    """One link of a flow: chunk ``k`` crosses it in round ``first + k``.

    Args:
      flow: which flow.
      sender: device that sends.
      receivers: devices that receive: one, or all at once for a multicast.
      first: the round of the first chunk.
      forwarded: whether the sender reads its destination buffer.
    """

    flow: SliceFlow
    sender: int
    receivers: tuple[int, ...]
    first: int
    forwarded: bool

    @property
    def last(self) -> int:
        """One past the round of the last chunk."""
        return self.first + self.flow.chunks


@dataclass(frozen=True)
class Run:
    """Rounds in which the same hops are active; they become one loop.

    Args:
      hops: the active hops, all with messages of one shape and all multicast or none.
      first: first round.
      count: number of rounds.
    """

    hops: tuple[Hop, ...]
    first: int
    count: int


def copies(plan: ReshardPlan, message_bytes: int) -> list[SliceFlow]:
    """What devices of both meshes keep: slices to copy from their source to their destination buffer.

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
    shapes = messages(plan, message_bytes)
    out: list[tuple[int, SliceFlow, tuple[int, ...]]] = []
    for row in range(len(plan.rows)):
        if plan.rows.gather[row]:
            out += _ring(plan, row, shapes)
            continue
        start, extent = box_of(plan, row)
        devices = (int(plan.sender[row]), *plan.receivers(row))
        out.append((row, SliceFlow(start, extent, shapes[row], devices, False, multicast and len(devices) > 2), ()))
    return out


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


def messages(plan: ReshardPlan, limit: int) -> list[tuple[int, ...]]:
    """The message shape of each row: one for all where that costs little, else one per extent."""
    extents = plan.rows.stop - plan.rows.start
    if not len(extents):
        return []
    common = _fit(tuple(extents.min(axis=0).tolist()), plan.itemsize, limit)
    sent = np.prod(-(-extents // np.array(common, np.int64)), axis=1) * math.prod(common)
    if sent.sum() * plan.itemsize <= 1.02 * plan.rows.size.sum():
        return [common] * len(extents)
    shapes = {tuple(e): _fit(tuple(e), plan.itemsize, limit) for e in np.unique(extents, axis=0).tolist()}
    return [shapes[tuple(e)] for e in extents.tolist()]


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


def schedule(plan: ReshardPlan, ordered_flows: Sequence[tuple[int, SliceFlow, tuple[int, ...]]]) -> list[Hop]:
    """Gives every hop its rounds: in the plan's order, as early as devices and NIC ports allow.

    Rows of one job may share a NIC port, as their devices move different chunks side by side; rows of another
    job wait for it, as planned.

    Args:
      plan: the plan.
      ordered_flows: its flows.

    Returns:
      The hops.

    Raises:
      PlanError: there are too many for one program.
    """
    sends, receives = [0] * len(plan.network.devices), [0] * len(plan.network.devices)
    links: dict[int, tuple[int, int, int]] = {}
    ends: dict[int, int] = {}
    hops: list[Hop] = []
    for row, flow, before in ordered_flows:
        if len(hops) > MOST_HOPS:
            raise PlanError(f"the plan has more than {MOST_HOPS} hops: too many for one program",
                            hint="reshard fewer devices at a time")
        ways = _ways(flow)
        job = int(plan.job[row])
        first = max((ends.get(r, 0) for r in before), default=0)
        for shift, (sender, receivers) in enumerate(ways):
            first = max(first, sends[sender] - shift, *(receives[r] - shift for r in receivers))
            for link in _crossed(plan, sender, receivers):
                owner, free, _ = links.get(link, (job, 0, 0))
                first = max(first, (free if owner == job else links[link][2]) - shift)
        for shift, (sender, receivers) in enumerate(ways):
            hop = Hop(flow, sender, receivers, first + shift, flow.forwarded or shift > 0)
            hops.append(hop)
            sends[sender] = hop.last
            for device in receivers:
                receives[device] = hop.last
            if flow.multicast:  # a broadcast keeps all its devices busy both ways
                for device in (sender, *receivers):
                    sends[device] = receives[device] = hop.last
            for link in _crossed(plan, sender, receivers):
                owner, free, last = links.get(link, (job, 0, 0))
                links[link] = (job, free if owner == job else last, max(last, hop.last))
            ends[row] = max(ends.get(row, 0), hop.last)
    return hops


def _ways(flow: SliceFlow) -> list[tuple[int, tuple[int, ...]]]:
    if flow.multicast:
        return [(flow.devices[0], flow.devices[1:])]
    return [(a, (b,)) for a, b in itertools.pairwise(flow.devices)]


def _crossed(plan: ReshardPlan, sender: int, receivers: tuple[int, ...]) -> list[int]:
    """NIC links between the hosts of a hop: out of the sender's port, into the receivers'."""
    host, port = plan.network.host, plan.network.port
    away = [r for r in receivers if host[r] != host[sender]]
    return [2 * int(port[sender]), *(2 * int(port[r]) + 1 for r in away)] if away else []


def runs(hops: Sequence[Hop]) -> list[Run]:
    """Groups rounds in which the same hops are active.

    Args:
      hops: the hops with their rounds.

    Returns:
      The runs in program order; those of one stretch of rounds differ in message shape or kind.
    """
    edges = sorted({edge for hop in hops for edge in (hop.first, hop.last)})
    by_first = sorted(hops, key=lambda hop: hop.first)
    active: list[Hop] = []
    out: list[Run] = []
    at = 0
    for lo, hi in itertools.pairwise(edges):
        # Ends: each round passes a hop.
        while at < len(by_first) and by_first[at].first <= lo:
            active.append(by_first[at])
            at += 1
        active = [hop for hop in active if hop.last > lo]
        kinds: dict[tuple[tuple[int, ...], bool], list[Hop]] = {}
        for hop in active:
            kinds.setdefault((hop.flow.message, hop.flow.multicast), []).append(hop)
        out += [Run(tuple(kind), lo, hi - lo) for kind in kinds.values()]
    return out
