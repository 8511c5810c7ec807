"""Chunks by when a job ends: few where others follow on its ports, more where hosts pass on the last bytes.

A chunk costs a port its overhead. In return a host passes on the last chunk sooner, which counts only at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlorewrite.plan.reshard.jobs import Jobs
from hlorewrite.plan.reshard.network import Network
from hlorewrite.plan.reshard.simulate import RoutedJob, item_of, run

_ROUNDS = 4


def rechunked(jobs: Jobs, items: Sequence[RoutedJob], order: Sequence[int], network: Network
              ) -> tuple[Sequence[RoutedJob], np.ndarray, np.ndarray]:
    """Items with chunks that fit their order, while that ends sooner.

    Args:
      jobs: the jobs.
      items: the jobs with their ports.
      order: the order they run in.
      network: the links.

    Returns:
      The items, and start and end of each in seconds.
    """
    start, end = run(items, order, network.ports)
    for _ in range(_ROUNDS):
        fitted = _fitted(jobs, items, start, float(end.max(initial=0.0)), network)
        begin, finish = run(fitted, order, network.ports)
        if finish.max(initial=0.0) >= end.max(initial=0.0) * (1 - 1e-9):
            break
        items, start, end = fitted, begin, finish
    return items, start, end


def _fitted(jobs: Jobs, items: Sequence[RoutedJob], start: np.ndarray, finish: float, network: Network
            ) -> list[RoutedJob]:
    """Jobs to one host with the fewest chunks with which they end in time; the last of their ports with the best."""
    idle = np.zeros(2 * network.ports)
    for at, item in zip(start.tolist(), items, strict=True):
        idle[list(item.links)] = np.maximum(idle[list(item.links)], at + item.busy)
    out: list[RoutedJob] = []
    counts = jobs.counts.tolist()
    for job, (at, item) in enumerate(zip(start.tolist(), items, strict=True)):
        local, size = int(jobs.local_hops[job]), float(jobs.size[job])
        if len(item.entry) != 1 or not local or jobs.gather[job]:
            out.append(item)
            continue
        chunks = network.chunks(size, 1, local, counts[job])
        left = finish - at - item.busy - network.latency_s - local * network.local_latency_s
        if (idle[list(item.links)] > at + item.busy + network.chunk_overhead_s).all() and left > 0:
            chunks = min(chunks, max(counts[job], math.ceil(local * size / network.local_bytes_per_s / left)))
        out.append(item_of(jobs, job, item.sender, item.entry, network, chunks=chunks))
    return out
