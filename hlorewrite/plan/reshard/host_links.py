"""What the links of a host carry together: the copies that its devices make of what arrives at its ports.

Of m devices that want a chunk, one has it from the port; m - 1 copies go by the links of the host's M devices. With
R(t) bytes in chunks that arrive at t or later, the last copy is there at t + R(t) (m - 1) / (M B_local) at least, for
every t. The simulator charges each job for its own copies alone; this adds the copies of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.plan.reshard.jobs import Jobs
from hlorewrite.plan.reshard.network import Network
from hlorewrite.plan.reshard.simulate import RoutedJob, run

_MOST_CHUNKS = 4_000_000


@dataclass(frozen=True)
class Arrivals:
    """Jobs as they arrive at hosts, one entry for each job and host.

    Attributes:
      job: which job, shape ``[arrivals]``.
      host: which host, shape ``[arrivals]``.
      first: when its first chunk is there, seconds, shape ``[arrivals]``.
      last: when its last chunk is there, seconds, shape ``[arrivals]``.
      chunks: number of chunks, shape ``[arrivals]``.
      size: bytes of all copies that devices of the host make, shape ``[arrivals]``.
    """

    job: np.ndarray
    host: np.ndarray
    first: np.ndarray
    last: np.ndarray
    chunks: np.ndarray
    size: np.ndarray


def timed(jobs: Jobs, items: Sequence[RoutedJob], order: Sequence[int], network: Network
          ) -> tuple[np.ndarray, np.ndarray]:
    """Runs items in an order, and lets the links of hosts make all copies.

    Args:
      jobs: the jobs.
      items: the jobs with their ports.
      order: the order they run in.
      network: the links.

    Returns:
      Start and end of each item in seconds.
    """
    start, end = run(items, order, network.ports)
    copies = np.where(jobs.gather | jobs.inside, 0, jobs.local_hops)
    table = [(job, port // network.nics_per_host, at + step * item.hop, item.busy, item.chunks)
             for job, (at, item) in enumerate(zip(start.tolist(), items, strict=True)) if copies[job]
             for step, port in enumerate(item.entry)]
    if not table:
        return start, end
    job, host, begin, busy, chunks = (np.array(column) for column in zip(*table, strict=True))
    last = begin + busy + network.latency_s
    arrivals = Arrivals(job, host, last - busy * (1 - 1 / chunks), last, chunks, copies[job] * jobs.size[job])
    return start, with_copies(end, arrivals, network)


def with_copies(end: np.ndarray, arrivals: Arrivals, network: Network) -> np.ndarray:
    """When jobs end, if the links of each host make the copies in the order in which chunks arrive.

    Args:
      end: when each job ends by itself, seconds, shape ``[jobs]``.
      arrivals: the jobs that devices of a host pass on.
      network: the links.

    Returns:
      When each ends, shape ``[jobs]``.

    Example:
      Two jobs of one chunk arrive at a host at 1.0 s; the copies of each take its links 2.0 s.

      >>> from dataclasses import replace
      >>> from hlorewrite.cost import topology
      >>> from hlorewrite.plan.reshard import network_of
      >>> network = network_of(topology("p3.8xlarge"), {0: 0, 1: 0})
      >>> network = replace(network, local_bytes_per_s=2.0, local_latency_s=0.0)
      >>> both = Arrivals(np.arange(2), np.zeros(2, int), np.ones(2), np.ones(2), np.ones(2, int), np.full(2, 8.0))
      >>> with_copies(np.full(2, 1.5), both, network).tolist()
      [3.0, 5.0]
    """
    if not len(arrivals.job):
        return end
    rate = np.bincount(network.host)[arrivals.host] * network.local_bytes_per_s
    pieces = np.minimum(arrivals.chunks, max(1, _MOST_CHUNKS // len(arrivals.job)))
    which = np.repeat(np.arange(len(pieces)), pieces)
    behind = np.cumsum(pieces)[which] - 1 - np.arange(len(which))  # chunks of the arrival that come later
    apart = (arrivals.last - arrivals.first) / np.maximum(pieces - 1, 1)
    at = arrivals.last[which] - behind * apart[which]
    order = np.lexsort((at, arrivals.host[which]))
    which, at = which[order], at[order]
    work = (arrivals.size / rate / pieces)[which]
    total = np.cumsum(work)
    # Copies begin when their chunk is there and those before them are made: a running maximum within each host.
    number = np.unique(arrivals.host[which], return_inverse=True)[1]
    apart_by = float(at.max() + total[-1])
    done = np.maximum.accumulate(at - (total - work) + number * apart_by) - number * apart_by + total
    out = end.copy()
    np.maximum.at(out, arrivals.job[which], done + network.local_latency_s)
    return out
