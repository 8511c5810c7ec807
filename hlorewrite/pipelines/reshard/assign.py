"""The port that sends each job, and the port through which each receiving host receives it."""

from collections.abc import Sequence

import numpy as np

from hlorewrite.pipelines.reshard.jobs import Jobs
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.simulate import RoutedJob, item_of


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
