"""Load of a host's links: the copies that its devices make of chunks that arrive at its ports.

Of m devices that want a chunk, one has it from the port; m - 1 copies go by the links of the host's M devices. With
R(t) bytes in chunks that arrive at t or later, the last copy cannot be done before t + R(t) (m - 1) / (M B_local), for
any t. The simulator charges each job for its own copies alone; this adds the copies of the others.

Chunks of a job arrive at equal distances. Its work is taken to arrive in proportion to the time from its first chunk to
its last, and a chunk's work with the last: never more than has arrived, and as much just before each chunk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from hlorewrite.pipelines.reshard.jobs import Jobs
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.simulate import RoutedJob, run


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
    counts = np.array([len(item.entry) for item in items], np.int64) * (copies > 0)
    if not counts.any():
        return start, end
    entries: dict[tuple[int, ...], np.ndarray] = {item.entry: np.array(item.entry, np.int64) for item in items}
    job = np.repeat(np.arange(len(items)), counts)
    host = np.concatenate([entries[item.entry] for item, count in zip(items, counts.tolist(), strict=True) if count]
                          ) // network.nics_per_host
    step = np.arange(len(job)) - np.repeat(np.cumsum(counts) - counts, counts)
    hop, busy, chunks = (np.array([value(item) for item in items])[job]
                         for value in (attrgetter("hop"), attrgetter("busy"), attrgetter("chunks")))
    begin = start[job] + step * hop
    return start, with_copies(end, arrivals_of(job, host, begin, busy, chunks, copies[job] * jobs.size[job],
                                               network=network),
                              network)


def arrivals_of(job: np.ndarray, host: np.ndarray, begin: np.ndarray, busy: np.ndarray, chunks: np.ndarray,
                size: np.ndarray, *, network: Network) -> Arrivals:
    """The arrivals of jobs whose chunks leave one after another.

    Args:
      job: which job, shape ``[arrivals]``.
      host: which host, shape ``[arrivals]``.
      begin: when its first chunk begins to enter the host, seconds, shape ``[arrivals]``.
      busy: seconds that all its chunks take a port, shape ``[arrivals]``.
      chunks: number of chunks, shape ``[arrivals]``.
      size: bytes of all copies, shape ``[arrivals]``.
      network: the links.
    """
    last = begin + busy + network.latency_s
    return Arrivals(job, host, last - busy * (1 - 1 / chunks), last, chunks, size)


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
      >>> from hlorewrite.pipelines.reshard import network_of
      >>> network = network_of(topology("p3.8xlarge"), {0: 0, 1: 0})
      >>> network = replace(network, local_bytes_per_s=2.0, local_latency_s=0.0)
      >>> both = Arrivals(np.arange(2), np.zeros(2, int), np.ones(2), np.ones(2), np.ones(2, int), np.full(2, 8.0))
      >>> with_copies(np.full(2, 1.5), both, network).tolist()
      [3.0, 5.0]
    """
    if not len(arrivals.job):
        return end
    work = arrivals.size / network.host_bytes_per_s[arrivals.host]
    jump = work / arrivals.chunks
    lasts = np.maximum(arrivals.last - arrivals.first, np.finfo(float).tiny)
    slope = np.where(arrivals.chunks > 1, (work - jump) / lasts, 0.0)
    host = np.unique(arrivals.host, return_inverse=True)[1]
    count, none = len(work), np.zeros(len(work))
    order = np.lexsort((np.concatenate([arrivals.first, arrivals.last]), np.tile(host, 2)))
    at, host = np.concatenate([arrivals.first, arrivals.last])[order], np.tile(host, 2)[order]
    jump, slope = np.concatenate([none, jump])[order], np.concatenate([slope, -slope])[order]
    passed = np.where(host[1:] == host[:-1], np.cumsum(slope)[:-1] * np.diff(at), 0.0)
    before = np.concatenate([[0.0], np.cumsum(passed)]) + np.cumsum(jump) - jump
    # Copies begin when their chunk is there and those before them are made: a running maximum within each host.
    apart = float(at.max() + before[-1] + jump[-1])
    done = np.maximum.accumulate(at - before + host * apart) - host * apart + before + jump
    out, final = end.copy(), order >= count
    np.maximum.at(out, arrivals.job[order[final] - count], done[final] + network.local_latency_s)
    return out
