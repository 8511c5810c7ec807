"""The port that sends each job, the port by which each receiving host receives it, and the load of its links."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from hlorewrite.pipelines.reshard.jobs import Jobs
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.simulate import RoutedJob, item_of, run


def first_senders(jobs: Jobs, network: Network) -> list[RoutedJob]:
    """The first holder sends, and the first receiver of each host receives.

    Args:
      jobs: the jobs.
      network: the links.

    Returns:
      One item per job.
    """
    chosen = [(senders[0], tuple(ports[0] for ports in hosts))
              for senders, hosts in zip(jobs.senders, jobs.hosts, strict=True)]
    return make_items(jobs, chosen, network)


def least_loaded(jobs: Jobs, network: Network, in_order: bool = False) -> list[RoutedJob]:
    """Each job is sent, and received, by the port with the least load so far.

    Jobs without a choice are counted first, then larger ones before smaller ones (longest processing time
    first): the classic 4/3-approximation of balancing.

    Args:
      jobs: the jobs.
      network: the links.
      in_order: choose in the order of the jobs instead, as the paper's load balancing by size does.

    Returns:
      One item per job.
    """
    out, into, own = np.zeros(network.ports), np.zeros(network.ports), np.zeros(network.ports)
    size = jobs.size.tolist()
    only = {hosts: tuple(ports[0] for ports in hosts) for hosts in set(jobs.hosts) if all(len(p) == 1 for p in hosts)}
    freedom = [len(s) > 1 or h not in only for s, h in zip(jobs.senders, jobs.hosts, strict=True)]
    chains = {entry: np.array(entry, np.int64) for entry in only.values()}
    places: dict[tuple[int, ...], np.ndarray] = {}
    tables: dict[tuple[tuple[int, ...], ...], np.ndarray] = {}
    same: dict[tuple[int, ...], tuple[int, ...]] = {}  # chains of thousands of hosts are kept once
    order = range(len(jobs)) if in_order else sorted(range(len(jobs)), key=lambda j: (freedom[j], -size[j], j))
    chosen: list[tuple[int, tuple[int, ...]]] = [(-1, ())] * len(jobs)
    for j in order:
        sender = least(jobs.senders[j], out, places)
        entry = only.get(jobs.hosts[j])
        if entry is None:
            entry = _least_of_each(jobs.hosts[j], into, tables)
        if entry:
            out[sender] += size[j]
            own[sender] += size[j]
            entry = entry if jobs.gather[j] else _busiest_last(entry, own)
            where = chains.get(entry)
            if where is None:
                where = chains[entry] = np.array(entry, np.int64)
            into[where] += size[j]
            out[where[:-1]] += size[j]
        chosen[j] = sender, same.setdefault(entry, entry)
    return make_items(jobs, chosen, network)


def least(ports: tuple[int, ...], load: np.ndarray, places: dict[tuple[int, ...], np.ndarray]) -> int:
    """The port with the smallest load; the lowest of several with equal load. ``places`` keeps the arrays of many
    ports."""
    if len(ports) < 8:
        return min(ports, key=lambda port: (load[port], port))
    where = places.get(ports)
    if where is None:
        where = places[ports] = np.array(sorted(ports), np.int64)
    return int(where[np.argmin(load[where])])


def _least_of_each(hosts: tuple[tuple[int, ...], ...], load: np.ndarray,
                   tables: dict[tuple[tuple[int, ...], ...], np.ndarray]) -> tuple[int, ...]:
    """The port of each host with the smallest load; of equal ones the lowest. ``tables`` keeps the ports as an array.

    A host with fewer ports than another names its first one again, which is taken only where it is the least.
    """
    table = tables.get(hosts)
    if table is None:
        most = max(map(len, hosts), default=1)
        rows = [[*(each := sorted(ports)), *each[:1] * (most - len(each))] for ports in hosts]
        table = tables[hosts] = np.array(rows, np.int64).reshape(len(hosts), most)
    return tuple(table[np.arange(len(hosts)), np.argmin(load[table], axis=1)].tolist())


def make_items(jobs: Jobs, chosen: Sequence[tuple[int, tuple[int, ...]]], network: Network) -> list[RoutedJob]:
    """The items of jobs with sender and entry ports given.

    A job that shares its links with others drains once for all of them, so it gets fewer chunks.

    Args:
      jobs: the jobs.
      chosen: per job the sending port and the port by which each receiving host takes it in.
      network: the links.

    Returns:
      One item per job.
    """
    out, into = np.zeros(network.ports), {}
    for size, (sender, entry) in zip(jobs.size.tolist(), chosen, strict=True):
        if entry:
            out[sender] += size
            into[entry] = into.get(entry, 0.0) + size
    taken = np.zeros(network.ports)
    for entry, size in into.items():
        taken[list(entry)] += size
    busiest = {entry: float(taken[list(entry)].max()) for entry in into}
    items = []
    for j, (sender, entry) in enumerate(chosen):
        share = max(busiest[entry], float(out[sender])) / max(float(jobs.size[j]), 1.0) if entry else 1.0
        items.append(item_of(jobs, j, sender, entry, network, share=max(share, 1.0)))
    return items


def _busiest_last(entry: tuple[int, ...], own: np.ndarray) -> tuple[int, ...]:
    """The last host of a chain forwards nothing, so it is the one that has most to send itself.

    All other hosts keep their order, so that chains that visit hosts in the same order follow each other without a
    pause.
    """
    last = entry[int(np.argmax(own[list(entry)]))]
    if own[last] <= own[entry[-1]]:
        return entry
    return (*(port for port in entry if port != last), last)


# ---- load of a host's links: the copies that its devices make of chunks that arrive at its ports

# Of m devices that want a chunk, one has it from the port; m - 1 copies go by the links of the host's M devices. With
# R(t) bytes in chunks that arrive at t or later, the last copy cannot be done before t + R(t) (m - 1) / (M B_local),
# for any t. The simulator charges each job for its own copies alone; this adds the copies of the others.
#
# Chunks of a job arrive at equal distances. Its work is taken to arrive in proportion to the time from its first chunk
# to its last, and a chunk's work with the last: never more than has arrived, and as much just before each chunk.


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
