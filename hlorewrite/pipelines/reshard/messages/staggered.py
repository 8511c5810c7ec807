"""Messages through all ports of a host, sized so that the copies inside the host are made as early as possible.

If a host passes everything on to all its devices, its links need about as long for the copies as its ports do for the
bytes. Equal messages arrive through all ports at once, and the links then idle until the next ones arrive. Messages of
different sizes arrive one after another.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.pipelines.reshard.assign import least
from hlorewrite.pipelines.reshard.host_links import timed
from hlorewrite.pipelines.reshard.jobs import Jobs, single_jobs
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.schedule import TransferSchedule, of_items
from hlorewrite.pipelines.reshard.simulate import RoutedJob, item_of
from hlorewrite.pipelines.reshard.transfers import SliceTransfers

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
