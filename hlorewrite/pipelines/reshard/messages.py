"""The messages of a plan: how many chunks each job is cut into, and when ports and hosts copy them."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.pipelines.reshard.assign import least, timed
from hlorewrite.pipelines.reshard.jobs import Jobs, single_jobs
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.schedule import TransferSchedule, of_items
from hlorewrite.pipelines.reshard.simulate import RoutedJob, item_of
from hlorewrite.pipelines.reshard.transfers import SliceTransfers

# ---- the number of chunks of each job: small if other jobs follow on its ports, larger if hosts pass on last bytes

# A chunk costs a port its overhead. In return a host passes on the last chunk sooner, which counts at the end, and the
# first, which counts where the links of the host need as long for all copies as its ports do.


_ROUNDS = 4


def rechunked(jobs: Jobs, items: Sequence[RoutedJob], order: Sequence[int], network: Network
              ) -> tuple[Sequence[RoutedJob], np.ndarray, np.ndarray]:
    """Items with chunks that fit their order, as long as they end sooner.

    Args:
      jobs: the jobs.
      items: the jobs with their ports.
      order: the order they run in.
      network: the links.

    Returns:
      The items, and start and end of each in seconds.
    """
    start, end = timed(jobs, items, order, network)
    for _ in range(_ROUNDS):
        fitted = _fitted(jobs, items, start, float(end.max(initial=0.0)), network)
        begin, finish = timed(jobs, fitted, order, network)
        if finish.max(initial=0.0) >= end.max(initial=0.0) * (1 - 1e-9):
            break
        items, start, end = fitted, begin, finish
    return items, start, end


def _fitted(jobs: Jobs, items: Sequence[RoutedJob], start: np.ndarray, finish: float, network: Network
            ) -> list[RoutedJob]:
    """Jobs to one host with the fewest chunks with which they end in time; the last of their ports with the best.

    They also have to end in time for the links of the host, which after the first chunk still have all copies to make.
    """
    idle = np.zeros(2 * network.ports)
    for at, item in zip(start.tolist(), items, strict=True):
        idle[list(item.links)] = np.maximum(idle[list(item.links)], at + item.busy)
    out: list[RoutedJob] = []
    behind = _copies_left(jobs, items, start, network).tolist()
    counts = jobs.counts.tolist()
    for job, (at, item) in enumerate(zip(start.tolist(), items, strict=True)):
        local, size = int(jobs.local_hops[job]), float(jobs.size[job])
        if len(item.entry) != 1 or not local or jobs.gather[job]:
            out.append(item)
            continue
        chunks = network.chunks(size, 1, local, counts[job])
        left = finish - at - item.busy - network.latency_s - float(network.local_latency(local))
        first = finish - at - behind[job] - network.latency_s - network.local_latency_s - network.chunk_overhead_s
        if (idle[list(item.links)] > at + item.busy + network.chunk_overhead_s).all() and left > 0 and first > 0:
            chunks = min(chunks, max(counts[job], math.ceil(local * size / network.local_bytes_per_s / left),
                                     math.ceil(size / network.bytes_per_s / first)))
        out.append(item_of(jobs, job, item.sender, item.entry, network, chunks=chunks))
    return out


def _copies_left(jobs: Jobs, items: Sequence[RoutedJob], start: np.ndarray, network: Network) -> np.ndarray:
    """Seconds of copies that the links of a job's host still have to make when it starts, its own included."""
    out = np.zeros(len(items))
    host = np.array([item.entry[0] // network.nics_per_host if len(item.entry) == 1 else -1 for item in items])
    busy = np.array([item.busy for item in items])
    for each in np.unique(host[host >= 0]):
        here = np.flatnonzero(host == each)
        seconds = (jobs.local_hops * jobs.size)[here] / network.host_bytes_per_s[each]
        at = np.concatenate([start[here], start[here] + busy[here]])
        order = np.argsort(at, kind="stable")
        pace = np.cumsum(np.concatenate([seconds, -seconds])[order] / np.tile(busy[here], 2)[order])
        left = seconds.sum() - np.concatenate([[0.0], np.cumsum(pace[:-1] * np.diff(at[order]))])
        out[here] = np.interp(start[here], at[order], left)
    return out


# ---- messages through all ports of a host, sized so that the copies inside the host are made as early as possible

# If a host passes everything on to all its devices, its links need about as long for the copies as its ports do for the
# bytes. Equal messages arrive through all ports at once, and the links then idle until the next ones arrive. Messages
# of different sizes arrive one after another.


MOST_MESSAGES = 20_000
"""The most messages of all slices; a module contains at most 50 000 hops."""
_HALVINGS = 20


@dataclass(frozen=True)
class PortMessage:
    """A message through one port of a host.

    Attributes:
      port: number of the port.
      part: the part of the port's bytes.
      start: seconds.
    """

    port: int
    part: float
    start: float


def staggered(seconds: float, copies: float, own: float, overhead: float, ports: int, most: int = MOST_MESSAGES
              ) -> list[PortMessage]:
    """Messages through all ports of a host, such that the last copy is made as early as possible.

    With R(t) bytes in messages that end at t or later, copies made by t + R(t) * c or sooner end in time. Each message
    is as large as that allows, by the port that is free first; so messages end one after another, not all at once.

    Args:
      seconds: what the bytes of a port take it.
      copies: what the copies of all bytes take the links of the host.
      own: what the copies of a port's bytes take the device at the port.
      overhead: seconds that a message takes its port in addition.
      ports: how many ports, each with as many bytes.
      most: how many messages there may be.

    Returns:
      The messages in the order in which they start.

    Example:
      One port; the copies of a message take as long as it.

      >>> [round(each.part, 2) for each in staggered(8.0, 8.0, 8.0, 1.0, 1)]
      [0.44, 0.31, 0.19, 0.06]
    """
    low, high = seconds + overhead, seconds + overhead + max(copies, own)
    best = [PortMessage(port, 1.0, 0.0) for port in range(ports)]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = _in_time(middle, seconds, copies / ports, own, overhead, ports, most=most)
        low, high = (low, middle) if found else (middle, high)
        best = found or best
    return best


def _in_time(end: float, seconds: float, copies: float, own: float, overhead: float, ports: int, *, most: int
             ) -> list[PortMessage]:
    """Messages whose copies are made in time, of a port's bytes in so many seconds each; none if there are none."""
    free, rest, out = [(0.0, port, 1.0) for port in range(ports)], float(ports), list[PortMessage]()
    # Ends: there are as many messages as there may be at most.
    while free:
        at, port, left = heapq.heappop(free)
        room = end - at - overhead
        part = min(left, (room - copies * rest) / seconds, room / (seconds + own))
        if part <= 0 or len(out) >= most:
            return []
        out.append(PortMessage(port, part, at))
        rest -= part
        if part < left:
            heapq.heappush(free, (at + part * seconds + overhead, port, left - part))
    return out


def messages_of_ports(rows: SliceTransfers, network: Network) -> list[PortMessage]:
    """The staggered messages in which each slice enters a host through all its ports.

    Args:
      rows: one row for each slice.
      network: the links.

    Returns:
      The messages of a slice, port by port; none if hosts get more than one slice, or only some of their devices do.
    """
    jobs = single_jobs(rows, network)
    hosts = {each for to in jobs.hosts for each in to}
    if (jobs.inside | jobs.gather | (jobs.local_hops == 0)).any() or len(hosts) < len(jobs) or any(
            len(to) != 1 for to in jobs.hosts) or len(counts := {len(to) for to in hosts}) != 1:
        return []
    ports, = counts
    size, copies = float(jobs.size.max()), int(jobs.local_hops.max())
    links = float(network.host_bytes_per_s[[to[0] // network.nics_per_host for to in hosts]].min())
    found = staggered(size / ports / network.bytes_per_s, copies * size / links,
                      copies * size / ports / network.local_bytes_per_s, network.chunk_overhead_s, ports,
                      MOST_MESSAGES // len(jobs))
    return sorted(found, key=lambda each: each.port)


def by_ports(jobs: Jobs, messages: Sequence[PortMessage], network: Network) -> TransferSchedule:
    """The schedule of messages by their ports, in the order of their start; each port has a separate sender.

    Args:
      jobs: one job for each message of each slice.
      messages: the messages of a slice.
      network: the links.
    """
    used, senders, items = np.zeros(network.ports), dict[int, int](), list[RoutedJob]()
    places: dict[tuple[int, ...], np.ndarray] = {}
    for job in range(len(jobs)):
        entry = jobs.hosts[job][0][messages[job % len(messages)].port]
        if entry not in senders:
            senders[entry] = least(jobs.senders[job], used, places)
            used[senders[entry]] += 1
        items.append(item_of(jobs, job, senders[entry], (entry,), network, chunks=1))
    order = sorted(range(len(jobs)), key=lambda job: messages[job % len(messages)].start)
    return of_items(items, *timed(jobs, items, order, network), False)


def places_of(messages: Sequence[PortMessage]) -> list[float]:
    """The fractions at which a slice is cut into these messages, port by port."""
    ends = np.cumsum([each.part for each in messages])
    return (ends[:-1] / ends[-1]).tolist()
