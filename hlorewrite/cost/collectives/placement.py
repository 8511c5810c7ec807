"""Where the ranks of each group are, and what bandwidth out of a host each group gets."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


@dataclass(frozen=True, slots=True)
class RankPlacement:
    """Where the ranks of a collective are, for one or many cases at once.

    Args:
      ranks: ranks of one group.
      hosts: hosts a group spans.
      ranks_per_host: most ranks of a group on one host.
      intra_gb_s: sustained GB/s of one rank into its host's fabric, one direction.
      inter_gb_s: GB/s out of one host for one group, after sharing its NICs with the other groups.
    """

    ranks: Array
    hosts: Array
    ranks_per_host: Array
    intra_gb_s: Array
    inter_gb_s: Array


def intra_gb_s(topology: Topology, ranks_per_host: int) -> float:
    """Sustained GB/s of one rank to the others of its group on the same host, one direction.

    Below a switch a GPU has its whole rate for any peers; directly linked GPUs of a host of P share theirs over
    P-1 peers, so that a group of r uses (r-1)/(P-1) of it.
    """
    rate = topology.intra_sustained_bytes_per_s / 1e9
    if topology.switched or topology.server_gpus < 2:
        return rate
    return rate * max(ranks_per_host - 1, 1) / (topology.server_gpus - 1)


def distinct_placements(topology: Topology, kind: str, groups: Sequence[Sequence[int]]) -> RankPlacement | None:
    """The different placements among groups that communicate at the same time.

    A host's NICs are shared: a group that spans hosts uses the NICs next to its GPUs, each divided by the
    number of groups that use it.

    Args:
      topology: the cluster.
      kind: the collective; for collective-permute each group is [source, target].
      groups: device numbers of each group.

    Returns:
      One entry for each different placement, or None when no group has two members.

    Raises:
      UsageError: a device is not in the cluster.

    Example:
      >>> from hlorewrite.cost import topology
      >>> rows = distinct_placements(topology("p3.8xlarge:2x4"), "all-reduce", [[0, 4], [1, 5], [2, 6], [3, 7]])
      >>> float(rows.inter_gb_s[0])  # four groups share one port of 10 Gbit/s
      0.296875
    """
    return _distinct(topology, kind == COLLECTIVE_PERMUTE.kind, tuple(map(tuple, groups)))


@functools.lru_cache(maxsize=512)
def _distinct(topology: Topology, pairs: bool, groups: tuple[tuple[int, ...], ...]) -> RankPlacement | None:
    import numpy as np
    real = [list(dict.fromkeys(group)) for group in groups if len(set(group)) > 1]
    if not real:
        return None
    members = [_by_host(topology, group) for group in real]
    load = _nic_load(topology, real, members, pairs)
    if pairs:
        return _chains(topology, real, members, load)
    rows = set()
    for group, hosts in zip(real, members, strict=True):
        most = max(len(gpus) for gpus in hosts.values())
        between = topology.intra_sustained_bytes_per_s
        if len(hosts) > 1:
            between = min(sum(topology.nic_sustained_bytes_per_s / load[nic]
                              for nic in {topology.nic_of(gpu) for gpu in gpus}) for gpus in hosts.values())
        rows.add((len(group), len(hosts), most, intra_gb_s(topology, most), between / 1e9))
    return RankPlacement(*(np.array(column, dtype=float) for column in zip(*sorted(rows), strict=True)))


def _chains(topology: Topology, pairs: Sequence[Sequence[int]], members: Sequence[dict[int, list[int]]],
            load: Counter[int]) -> RankPlacement:
    """Placements of a permute: one for each set of devices that its pairs connect, a ring being one chain."""
    import numpy as np
    root: dict[int, int] = {}

    def find(gpu: int) -> int:
        # Ends: roots are joined to roots, so the chain has no circle.
        while root.setdefault(gpu, gpu) != gpu:
            gpu = root[gpu]
        return gpu

    for source, target in pairs:
        root[find(source)] = find(target)
    chains: dict[int, set[int]] = defaultdict(set)
    slowest: dict[int, float] = {}
    for pair, hosts in zip(pairs, members, strict=True):
        chain = find(pair[0])
        chains[chain].update(pair)
        if len(hosts) > 1:
            rate = topology.nic_sustained_bytes_per_s / load[topology.nic_of(pair[0])]
            slowest[chain] = min(rate, slowest.get(chain, rate))
    rows = set()
    for chain, gpus in chains.items():
        hosts = _by_host(topology, sorted(gpus))
        most = max(len(there) for there in hosts.values())
        rate = slowest.get(chain, topology.intra_sustained_bytes_per_s)
        rows.add((len(gpus), len(hosts), most, intra_gb_s(topology, 2), rate / 1e9))
    return RankPlacement(*(np.array(column, dtype=float) for column in zip(*sorted(rows), strict=True)))


def _by_host(topology: Topology, group: Sequence[int]) -> dict[int, list[int]]:
    hosts: dict[int, list[int]] = defaultdict(list)
    for gpu in group:
        hosts[topology.host_of(gpu)].append(gpu)
    return hosts


def _nic_load(topology: Topology, groups: Sequence[Sequence[int]], members: Sequence[dict[int, list[int]]],
              pairs: bool) -> Counter[int]:
    """How many groups send through each NIC."""
    load: Counter[int] = Counter()
    for group, hosts in zip(groups, members, strict=True):
        if len(hosts) > 1:
            senders = group[:1] if pairs else group
            load.update({topology.nic_of(gpu) for gpu in senders})
    return load


def regular_placement(topology: Topology, ranks, ranks_per_host, groups_per_host):
    """Placements of equal groups, for many cases at once.

    Args:
      topology: the cluster.
      ranks: ranks of a group, shape (cases,).
      ranks_per_host: ranks of a group on one host, shape (cases,).
      groups_per_host: groups with ranks on one host that communicate at the same time, shape (cases,).

    Returns:
      A :class:`RankPlacement` with arrays of shape (cases,).
    """
    import numpy as np
    ranks, per_host, groups = (np.asarray(part, dtype=float) for part in (ranks, ranks_per_host, groups_per_host))
    hosts = np.ceil(ranks / per_host)
    rate = topology.intra_sustained_bytes_per_s / 1e9
    if not topology.switched and topology.server_gpus > 1:
        rate = rate * np.maximum(per_host - 1, 1) / (topology.server_gpus - 1)
    # A GPU reaches its share of the NICs; a group its GPUs' NICs, divided by the groups on each of them.
    nics = topology.nics_per_host * topology.gpus_per_host / topology.server_gpus
    reach = np.minimum(np.maximum(per_host * topology.nics_per_host / topology.server_gpus, 1), np.maximum(nics, 1))
    sharing = np.maximum(groups * reach / np.maximum(nics, 1), 1)
    between = reach / sharing * topology.nic_sustained_bytes_per_s / 1e9
    return RankPlacement(ranks, hosts, per_host, np.broadcast_to(rate, ranks.shape), between)
