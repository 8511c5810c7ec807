"""Which port sends each job, and by which port each receiving host takes it in."""

from __future__ import annotations

from collections.abc import Sequence

from hlorewrite.plan.reshard.jobs import Jobs
from hlorewrite.plan.reshard.network import Network
from hlorewrite.plan.reshard.simulate import Item, item_of


def first_senders(jobs: Jobs, network: Network) -> list[Item]:
    """The first holder sends and the first receiver of each host takes it in.

    Args:
      jobs: the jobs.
      network: the links.

    Returns:
      One item per job.
    """
    chosen = [(senders[0], tuple(ports[0] for ports in hosts))
              for senders, hosts in zip(jobs.senders, jobs.hosts, strict=True)]
    return make_items(jobs, chosen, network)


def least_loaded(jobs: Jobs, network: Network, in_order: bool = False) -> list[Item]:
    """Each job is sent by the port with the least to send so far, and taken in likewise.

    Jobs without a choice are counted first, then larger ones before smaller ones (longest processing time
    first): the classic 4/3-approximation of balancing.

    Args:
      jobs: the jobs.
      network: the links.
      in_order: choose in the order of the jobs instead, as the paper's load balancing by size does.

    Returns:
      One item per job.
    """
    out, into, own = [0.0] * network.ports, [0.0] * network.ports, [0.0] * network.ports
    size = jobs.size.tolist()
    freedom = [len(s) > 1 or any(len(p) > 1 for p in h) for s, h in zip(jobs.senders, jobs.hosts, strict=True)]
    order = range(len(jobs)) if in_order else sorted(range(len(jobs)), key=lambda j: (freedom[j], -size[j], j))
    chosen: list[tuple[int, tuple[int, ...]]] = [(-1, ())] * len(jobs)
    for j in order:
        sender = min(jobs.senders[j], key=lambda port: (out[port], port))
        entry = tuple(min(ports, key=lambda port: (into[port], port)) for ports in jobs.hosts[j])
        if entry:
            out[sender] += size[j]
            own[sender] += size[j]
        entry = _busiest_last(entry, own) if not jobs.gather[j] else entry
        for i, port in enumerate(entry):
            into[port] += size[j]
            if i + 1 < len(entry):
                out[port] += size[j]
        chosen[j] = sender, entry
    return make_items(jobs, chosen, network)


def make_items(jobs: Jobs, chosen: Sequence[tuple[int, tuple[int, ...]]], network: Network) -> list[Item]:
    """The items of jobs with sender and entry ports given.

    A job that shares its links with others drains once for all of them, so it gets fewer chunks.

    Args:
      jobs: the jobs.
      chosen: per job the sending port and the port by which each receiving host takes it in.
      network: the links.

    Returns:
      One item per job.
    """
    load = [0.0] * (2 * network.ports)
    for size, (sender, entry) in zip(jobs.size.tolist(), chosen, strict=True):
        if entry:
            load[2 * sender] += size
        for port in entry:
            load[2 * port + 1] += size
    items = []
    for j, (sender, entry) in enumerate(chosen):
        busiest = max((load[2 * port + 1] for port in entry), default=0.0)
        share = max(busiest, load[2 * sender]) / max(float(jobs.size[j]), 1.0) if entry else 1.0
        items.append(item_of(jobs, j, sender, entry, network, max(share, 1.0)))
    return items


def _busiest_last(entry: tuple[int, ...], own: list[float]) -> tuple[int, ...]:
    """The last host of a chain forwards nothing: it is the one that has most of its own to send.

    All other hosts keep their order: chains that visit hosts alike follow each other without a pause.
    """
    last = max(entry, key=lambda port: own[port], default=-1)
    if last < 0 or own[last] <= own[entry[-1]]:
        return entry
    return (*(port for port in entry if port != last), last)
