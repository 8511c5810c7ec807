"""The simulator: when each job runs, given its senders and the order.

A pipelined chain over hosts h1, h2, ... occupies the sender's outgoing port for ``busy`` seconds from its
start, the incoming port of h1 for as long, and every further link the same time one ``hop`` later: the hop is
what one chunk needs. A job starts when all its links can take it. The two directions of a port are independent.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.pipelines.reshard.jobs import Jobs
from hlorewrite.pipelines.reshard.network import Network

_WIDE = 24
"""From this average number of links per item on, arrays are faster than loops."""


@dataclass(frozen=True)
class RoutedJob:
    """A job with its ports chosen.

    Args:
      links: the links it occupies; link ``2·port`` goes out of a port, ``2·port + 1`` into it.
      steps: after how many hops each link is occupied.
      hop: seconds of a hop.
      busy: seconds each link is occupied.
      done: seconds from the start until the last receiver has everything.
      after: items that must end before this one starts.
      sender: port that sends; -1 inside a host.
      entry: the port by which each receiving host gets the data, in chain order.
      chunks: number of chunks over all rows.
    """

    links: tuple[int, ...]
    steps: tuple[int, ...]
    hop: float
    busy: float
    done: float
    after: tuple[int, ...]
    sender: int
    entry: tuple[int, ...]
    chunks: int


def item_of(jobs: Jobs, job: int, sender: int, entry: tuple[int, ...], network: Network,
            *, share: float = 1.0, chunks: int | None = None) -> RoutedJob:
    """The resources of a job once its ports are chosen.

    Args:
      jobs: the jobs.
      job: which one.
      sender: port that sends.
      entry: one port per receiving host, in chain order.
      network: the links.
      share: jobs of this size that follow each other on its busiest link.
      chunks: how many between hosts; by default those with which its busiest link is fastest.

    Returns:
      The item.
    """
    size, rows = float(jobs.size[job]), int(jobs.first[job + 1] - jobs.first[job])
    local, after = int(jobs.local_hops[job]), jobs.after.get(job, ())
    if jobs.gather[job]:
        return _gather_item(size, local, entry, after, network)
    if not entry:
        count = network.chunks(size, 0, local, rows)
        hop = network.local_latency_s + size / count / network.local_bytes_per_s
        return RoutedJob((), (), 0.0, busy=0.0, done=size / network.local_bytes_per_s + local * hop, after=after,
                         sender=-1, entry=(), chunks=count)
    count = chunks or network.chunks(size / share, len(entry), local, rows)
    busy = count * network.chunk_overhead_s + size / network.bytes_per_s
    hop = network.latency_s + network.chunk_overhead_s + size / count / network.bytes_per_s
    tail = float(network.local_time(size / count, local))
    links, steps = _chain(entry)
    done = (len(entry) - 1) * hop + busy + network.latency_s + tail
    return RoutedJob((2 * sender, *links), (0, *steps), hop, busy=busy, done=done, after=after, sender=sender,
                     entry=entry, chunks=count)


@functools.lru_cache(maxsize=4096)
def _chain(entry: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Links of a chain after its sender, and the hop after which each is occupied."""
    links, steps = [], []
    for i, port in enumerate(entry):
        links.append(2 * port + 1)
        steps.append(i)
        if i + 1 < len(entry):
            links.append(2 * port)
            steps.append(i + 1)
    return tuple(links), tuple(steps)


def _gather_item(size: float, local: int, entry: tuple[int, ...], after: tuple[int, ...],
                 network: Network) -> RoutedJob:
    """A ring all-gather of n parts: n-1 steps, in each of which every link carries one part."""
    if not entry:
        steps = local - 1
        done = steps * (network.local_latency_s + size / (steps + 1) / network.local_bytes_per_s)
        return RoutedJob((), (), 0.0, busy=0.0, done=done, after=after, sender=-1, entry=(), chunks=max(steps, 1))
    members = (local + 1) * len(entry)
    step = network.chunk_overhead_s + size / members / network.bytes_per_s
    links = tuple(2 * port + way for port in entry for way in (0, 1))
    busy = (members - 1) * step
    done = busy + (members - 1) * network.latency_s
    return RoutedJob(links, (0,) * len(links), 0.0, busy=busy, done=done, after=after, sender=-1, entry=entry,
                     chunks=members)


def run(items: Sequence[RoutedJob], order: Sequence[int], ports: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts items in the given order, each as early as its links and predecessors allow.

    Args:
      items: the jobs.
      order: permutation of the items, predecessors first.
      ports: number of NIC ports.

    Returns:
      Start and end of each item in seconds, shape ``[items]``.

    Example:
      >>> item = RoutedJob((0, 3), (0, 0), 0.0, 1.0, 1.5, (), 0, (1,), 1)
      >>> run([item, item], [0, 1], 2)[1].tolist()
      [1.5, 2.5]
    """
    if sum(len(item.links) for item in items) > _WIDE * len(items):
        return _run_wide(items, order, ports)
    free = [0.0] * (2 * ports)
    start, end = np.zeros(len(items)), np.zeros(len(items))
    for i in order:
        item = items[i]
        at, hop = 0.0, item.hop
        for link, step in zip(item.links, item.steps, strict=True):
            at = max(at, free[link] - step * hop)
        for before in item.after:
            at = max(at, float(end[before]))
        for link, step in zip(item.links, item.steps, strict=True):
            free[link] = at + step * hop + item.busy
        start[i], end[i] = at, at + item.done
    return start, end


def _run_wide(items: Sequence[RoutedJob], order: Sequence[int], ports: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for items of many links, whose links are handled as arrays."""
    free = np.zeros(2 * ports)
    start, end = np.zeros(len(items)), np.zeros(len(items))
    arrays: dict[tuple[bool, tuple[int, ...]], tuple[np.ndarray, np.ndarray]] = {}
    for i in order:
        item = items[i]
        key = item.sender < 0, item.entry  # the links of a gather are not those of a chain
        if key not in arrays:
            arrays[key] = np.array(item.links[1:], np.int64), np.array(item.steps[1:], np.int64)
        links, steps = arrays[key]
        at = float(free[item.links[0]]) if item.links else 0.0
        delay = steps * item.hop
        if len(links):
            at = max(at, float((free[links] - delay).max()), 0.0)
        for before in item.after:
            at = max(at, float(end[before]))
        if item.links:
            free[item.links[0]] = at + item.busy
        if len(links):
            free[links] = at + delay + item.busy
        start[i], end[i] = at, at + item.done
    return start, end


def run_unicast(sender: np.ndarray, receiver: np.ndarray, busy: np.ndarray, done: np.ndarray, levels: np.ndarray,
                ports: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for jobs with one link out and one in, whole levels at a time.

    Args:
      sender: port that sends, shape ``[jobs]``.
      receiver: port that receives, shape ``[jobs]``.
      busy: seconds each occupies its links, shape ``[jobs]``.
      done: seconds until the receiver has everything, shape ``[jobs]``.
      levels: shape ``[jobs]``; jobs of a level share no link, and levels run in rising order.
      ports: number of NIC ports.

    Returns:
      Start and end of each job in seconds.
    """
    out, into = np.zeros(ports), np.zeros(ports)
    start = np.zeros(len(sender))
    order = np.argsort(levels.astype(np.int32), kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(levels))])
    for lo, hi in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        jobs = order[lo:hi]
        s, r = sender[jobs], receiver[jobs]
        at = np.maximum(out[s], into[r])
        start[jobs] = at
        out[s] = into[r] = at + busy[jobs]
    return start, start + done
