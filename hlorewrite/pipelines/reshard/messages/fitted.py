"""Chooses the number of chunks of each job: small if other jobs follow on its ports, larger if hosts have to pass on
the last bytes.

A chunk costs a port its overhead. In return a host passes on the last chunk sooner, which counts at the end, and the
first, which counts where the links of the host need as long for all copies as its ports do.
"""

import math
from collections.abc import Sequence

import numpy as np

from hlorewrite.pipelines.reshard.host_links import timed
from hlorewrite.pipelines.reshard.jobs import Jobs
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.simulate import RoutedJob, item_of

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
