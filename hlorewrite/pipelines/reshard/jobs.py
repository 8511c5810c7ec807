"""Jobs: rows that go the same way, scheduled as one; and what a job occupies.

Two rows go the same way when their holders are at the same NIC ports and so do their receivers. A plan for
a thousand devices has up to a million rows and only as many jobs as there are pairs of hosts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.transfers import SliceTransfers


@dataclass(frozen=True)
class PortClass:
    """Common properties of devices at the same NIC ports.

    Args:
      ports: their ports, in the order of the devices of the first such group.
      hosts: their ports by host, hosts in rising order.
      most: the largest number of devices on one host.
      least: the smallest number of devices on one host.
    """

    ports: tuple[int, ...]
    hosts: tuple[tuple[int, ...], ...]
    most: int
    least: int


@dataclass(frozen=True)
class Jobs:
    """Groups of rows before senders are chosen.

    Args:
      rows: row numbers sorted by job, shape ``[rows]``.
      first: where each job's rows begin in ``rows``, shape ``[jobs + 1]``.
      size: bytes of each job, shape ``[jobs]``.
      holders: class of each job's holders, shape ``[jobs]``.
      receivers: class of each job's receivers, shape ``[jobs]``.
      classes: the classes.
      inside: whether a job stays inside hosts, so that no NIC serves it, shape ``[jobs]``.
      gather: whether the job is an all-gather, shape ``[jobs]``.
      after: per job the jobs that must end first.
    """

    rows: np.ndarray
    first: np.ndarray
    size: np.ndarray
    holders: np.ndarray
    receivers: np.ndarray
    classes: tuple[PortClass, ...]
    inside: np.ndarray
    gather: np.ndarray
    after: dict[int, tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.size)

    @property
    def counts(self) -> np.ndarray:
        """Number of rows of each job."""
        return np.diff(self.first)

    @cached_property
    def senders(self) -> list[tuple[int, ...]]:
        """Per job, the NIC ports of the holders."""
        ports = [c.ports for c in self.classes]
        return [ports[c] for c in self.holders.tolist()]

    @cached_property
    def hosts(self) -> list[tuple[tuple[int, ...], ...]]:
        """Per job, for each receiving host in chain order, its NIC ports with a receiver; empty inside a host."""
        hosts = [c.hosts for c in self.classes]
        pairs = zip(self.receivers.tolist(), self.inside.tolist(), strict=True)
        return [() if inside else hosts[c] for c, inside in pairs]

    @cached_property
    def local_hops(self) -> np.ndarray:
        """Per job, the largest number of receivers on a host, less the one that a NIC serves."""
        most = np.array([c.most for c in self.classes], np.int64)
        return most[self.receivers] - np.where(self.inside, 0, 1)

    @cached_property
    def to_one_host(self) -> bool:
        """Whether each job arrives at one host, and waits for none."""
        if self.after or not len(self) or self.inside.any() or self.gather.any():
            return False
        return bool(np.array([len(c.hosts) == 1 for c in self.classes])[self.receivers].all())

    @cached_property
    def unicast(self) -> bool:
        """Whether each job has one port to leave from and one to arrive at, and waits for no other job."""
        one = np.array([len(c.ports) == 1 for c in self.classes])
        return self.to_one_host and bool(one[self.holders].all() and one[self.receivers].all())


def single_jobs(rows: SliceTransfers, network: Network) -> Jobs:
    """Makes every row a separate job, in the order of the rows.

    Args:
      rows: the transfers.
      network: the links.

    Returns:
      One job for each row.
    """
    return _jobs(rows, network, np.arange(len(rows)))


def bundled_jobs(rows: SliceTransfers, network: Network, lanes: int = 1) -> Jobs:
    """Combines rows that go the same way into one job, or distributes them over ``lanes`` jobs.

    Args:
      rows: the transfers; gathers stay on their own.
      network: the links.
      lanes: jobs to make of each group of rows; more than one lets a group use several senders or NICs.

    Returns:
      The jobs, in the order of their first rows.
    """
    kind, classes = _classes(rows, network)
    pair = kind[rows.holders] * len(classes) + kind[rows.receivers]
    if lanes > 1:
        pair = pair * lanes + _rank_within(pair) % lanes
    if rows.gather.any():
        pair = np.where(rows.gather, int(pair.max(initial=0)) + 1 + np.arange(len(rows)), pair)
    return _jobs(rows, network, _dense(pair))


def _dense(key: np.ndarray) -> np.ndarray:
    """Keys renumbered from 0 in the order of their first occurrence."""
    span = int(key.max(initial=0)) + 1
    if span > 50_000_000:
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    else:  # a table is several times faster than sorting a million keys
        table = np.full(span, len(key), np.int64)
        table[key[::-1]] = np.arange(len(key))[::-1]
        present = np.flatnonzero(table < len(key))
        first, number = table[present], np.empty(span, np.int64)
        number[present] = np.arange(len(present))
        inverse = number[key]
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse]


def _rank_within(key: np.ndarray) -> np.ndarray:
    """For each row how many earlier rows have its key."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(key) else np.zeros(0, bool)
    start = np.maximum.accumulate(np.where(fresh, np.arange(len(key)), 0))
    out = np.empty(len(key), np.int64)
    out[order] = np.arange(len(key)) - start
    return out


def _classes(rows: SliceTransfers, network: Network) -> tuple[np.ndarray, tuple[PortClass, ...]]:
    """The class of each group of devices."""
    number: dict[PortClass, int] = {}
    host, port = network.host.tolist(), network.port.tolist()
    kinds = []
    for group in rows.groups:
        by_host: dict[int, list[int]] = {}
        for device in group:
            by_host.setdefault(host[device], []).append(port[device])
        port_class = PortClass(tuple(dict.fromkeys(port[d] for d in group)),
                               tuple(tuple(sorted(set(by_host[h]))) for h in sorted(by_host)),
                               *(pick(len(ports) for ports in by_host.values()) for pick in (max, min)))
        kinds.append(number.setdefault(port_class, len(number)))
    return np.array(kinds, np.int64), tuple(number)


def _jobs(rows: SliceTransfers, network: Network, job: np.ndarray) -> Jobs:
    kind, classes = _classes(rows, network)
    count = int(job.max(initial=-1)) + 1
    # Jobs are numbered by their first row: as many jobs as rows means they are in order already.
    order = np.arange(count) if count == len(job) else np.argsort(job.astype(np.int32), kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(job, minlength=count))]).astype(np.int64)
    lead = order[first[:-1]]
    holders, receivers, gather = kind[rows.holders[lead]], kind[rows.receivers[lead]], rows.gather[lead]
    after = {int(job[row]): tuple(sorted({int(job[r]) for r in before})) for row, before in rows.after.items()}
    return Jobs(order, first, np.bincount(job, rows.size, minlength=count), holders=holders, receivers=receivers,
                classes=classes, inside=_inside(classes, holders, receivers, gather, network.nics_per_host),
                gather=gather, after=after)


def _inside(classes: tuple[PortClass, ...], holders: np.ndarray, receivers: np.ndarray, gather: np.ndarray,
            nics: int) -> np.ndarray:
    """The jobs that need no NIC: receivers next to a holder, or an all-gather on one host."""
    hosts = [frozenset(port // nics for port in c.ports) for c in classes]
    alone = np.array([len(h) == 1 for h in hosts], bool)
    out = gather & alone[receivers]
    sending = frozenset().union(*(hosts[c] for c in set(holders.tolist())))
    taking = frozenset().union(*(hosts[c] for c in set(receivers.tolist())))
    if sending & taking:
        pairs = zip(holders.tolist(), receivers.tolist(), strict=True)
        out |= ~gather & np.array([bool(hosts[a] & hosts[b]) for a, b in pairs], bool)
    return out
