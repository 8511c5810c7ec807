"""Lower bounds: what no plan can beat, whatever it sends in which order.

Every slice enters each host that lacks it at least once, and leaves a port of a holder at least once, in one
message or more. The time of these messages on a set of ports, over the number of ports, bounds the makespan. When the
slice that leaves last for the first time has left, at most one host for each port of its holders has it or will get it.
From then on holders send it again after each message's overhead, and hosts that got it after that and the latency (the
postal model of Bar-Noy and Kipnis, 1992): the time until all hosts have it comes on top.

Few large messages and many small ones both take time (``_time_of_blocks``). Where all slices of P ports go to the same
n > P hosts, number the messages that carry bytes away for the first time by when they end, D_1 to D_K, with s_1 to s_K
such bytes, T together. Each port takes o and s_i / B for one:

    P D_i >= s_1 / B + ... + s_i / B + i o.

Of message i and those after it no host has anything before D_i, and P hosts at most are getting it. The last of the
others begins when all hosts can have got a message, less o, and takes in all these bytes, by P ports at most:

    end >= D_i + postal + (s_i + ... + s_K) / (P B) >= T / (P B) + postal + (i o + s_i / B) / P.

The largest of these is at least their mean, T / (K B) + o (K + 1) / 2 in place of i o + s_i / B, for the best K.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence

import numpy as np

from hlorewrite.plan.reshard.jobs import Jobs, PortClass
from hlorewrite.plan.reshard.network import Network


def lower_bound(jobs: Jobs, network: Network) -> float:
    """Seconds that any plan of any strategy needs.

    Args:
      jobs: the broadcast jobs (not those of another strategy), in any grouping.
      network: the links.

    Returns:
      The bound; 0 when nothing moves.
    """
    away = ~jobs.inside
    if not away.any():
        return network.local_latency_s if len(jobs) else 0.0
    leaving, entering = _loads(jobs, _seconds(jobs, network))
    used = frozenset().union(*leaving, *entering)
    total = sum(entering.values())
    further = _further_time(jobs, network)
    return max(_densest(leaving) + further, _densest(entering), total / len(used),
               _time_of_blocks(jobs, network)) + network.latency_s


def leaving_time(jobs: Jobs, network: Network) -> float:
    """Seconds that the ports of holders need to send every row once.

    Args:
      jobs: the jobs of any strategy; gathers among receivers do not count.
      network: the links.

    Returns:
      A bound of every plan of these jobs.
    """
    leaving, _ = _loads(jobs, _seconds(jobs, network))
    return _densest(leaving)


def ports_time(jobs: Jobs, busy: Sequence[float], network: Network) -> float:
    """Seconds that ports need for jobs in any order, from any holders.

    Args:
      jobs: the jobs.
      busy: seconds each occupies a port.
      network: the links.

    Returns:
      A bound of every order of these jobs.
    """
    return max(max(busy), *map(_densest, _loads(jobs, np.array(busy)))) + network.latency_s


def _loads(jobs: Jobs, seconds: np.ndarray) -> tuple[dict[frozenset[int], float], dict[frozenset[int], float]]:
    """Seconds of what leaves and of what enters hosts, by the ports that it may take; gathers do not count."""
    away = ~jobs.inside & ~jobs.gather
    leaving: dict[frozenset[int], float] = {}
    entering: dict[frozenset[int], float] = {}
    sent, taken = (np.bincount(side[away], seconds[away], minlength=len(jobs.classes)).tolist()
                   for side in (jobs.holders, jobs.receivers))
    for kind, out, into in zip(jobs.classes, sent, taken, strict=True):
        if out:
            _add(leaving, kind.ports, out)
        for ports in kind.hosts if into else ():
            _add(entering, ports, into)
    return leaving, entering


def _seconds(jobs: Jobs, network: Network) -> np.ndarray:
    """What one port needs for each job, each row one message."""
    return jobs.size / network.bytes_per_s + jobs.counts * network.chunk_overhead_s


def _further_time(jobs: Jobs, network: Network) -> float:
    """Seconds that any slice needs at least from its first arrivals until all its hosts have it."""
    local, kinds = bool(jobs.inside.any()), set[tuple[int, int, int]]()
    for holders, receivers in zip(jobs.holders[~jobs.inside].tolist(), jobs.receivers[~jobs.inside].tolist(),
                                  strict=True):
        have, want = jobs.classes[holders], jobs.classes[receivers]
        # Where receivers stand next to holders, they can send too, by any port of the host.
        first = len(have.hosts) * network.nics_per_host if local else len(have.ports)
        kinds.add((len(want.hosts), first, max(map(len, want.hosts))))
    return min((_postal_time(*kind, network) for kind in kinds), default=0.0)


def _time_of_blocks(jobs: Jobs, network: Network) -> float:
    """The longest time that messages of any sizes take from some ports, and from all, to hosts that want everything."""
    if jobs.inside.any() or min(len(jobs.classes[each].hosts) for each in set(jobs.receivers.tolist())) < 2:
        return 0.0  # receivers next to holders may send too; and two hosts are needed to wait for each other
    sizes = np.bincount(jobs.holders, jobs.size, minlength=len(jobs.classes)).tolist()
    wanted: dict[int, set[int]] = {}
    for holders, receivers in zip(jobs.holders.tolist(), jobs.receivers.tolist(), strict=True):
        wanted.setdefault(holders, set()).add(receivers)
    groups: dict[frozenset[int], list[int]] = {}
    for holders in wanted:
        groups.setdefault(frozenset(jobs.classes[holders].ports), []).append(holders)
    groups[frozenset().union(*groups)] = list(wanted)
    return max(_blocks_of(len(ports), sum(sizes[each] for each in holders),
                          [jobs.classes[each] for each in set().union(*(wanted[each] for each in holders))], network)
               for ports, holders in groups.items())


def _blocks_of(ports: int, size: float, wanting: list[PortClass], network: Network) -> float:
    """Seconds for bytes that leave by some ports, each to the same hosts; 0 if they do not."""
    nics = network.nics_per_host
    hosts = set.intersection(*({into[0] // nics for into in kind.hosts} for kind in wanting))
    if len(hosts) <= ports:
        return 0.0
    entries: dict[int, set[int]] = {}
    for kind in wanting:
        for into in kind.hosts:
            entries.setdefault(into[0] // nics, set()).update(into)
    most = max(len(entries[host]) for host in hosts)
    if most > ports:
        return 0.0
    seconds, overhead = size / network.bytes_per_s, network.chunk_overhead_s
    best = math.sqrt(2 * seconds / overhead)
    spent = min(seconds / count + overhead * (count + 1) / 2 for count in (max(1, int(best)), int(best) + 1))
    return (seconds + spent) / ports + _postal_time(len(hosts), ports, most, network)


def _postal_time(hosts: int, first: int, each: int, network: Network) -> float:
    """Seconds from the first arrivals until all hosts have a message, when each that has it sends it on and on.

    Args:
      hosts: how many want it.
      first: ports of its holders.
      each: ports of a host that wants it.
      network: its overhead of a message, and latency.
    """
    reached, arrivals = 0, [(0.0, first)]
    # Ends: holders have a port, so each iteration reaches more hosts.
    while True:
        at, arrived = heapq.heappop(arrivals)
        reached += arrived
        if reached >= hosts:
            return at
        heapq.heappush(arrivals, (at + network.chunk_overhead_s, arrived))
        heapq.heappush(arrivals, (at + network.chunk_overhead_s + network.latency_s, arrived * each))


def _add(loads: dict[frozenset[int], float], ports: Iterable[int], seconds: float) -> None:
    key = frozenset(ports)
    loads[key] = loads.get(key, 0.0) + seconds


def _densest(loads: dict[frozenset[int], float]) -> float:
    """Largest seconds per port over the sets worth asking: each one, what is connected to it, and all."""
    if not loads:
        return 0.0
    joined = _components(ports for ports in loads if len(ports) > 1)
    sets = {ports for ports in loads if len(ports) > 1} | set(joined) | {frozenset().union(*loads)}
    if len(loads) * len(sets) > 4_000_000:
        sets = set(joined)
    alone: dict[frozenset[int], float] = {}
    big: dict[frozenset[int], float] = {}
    for ports, size in loads.items():
        (alone if len(ports) == 1 else big)[ports] = size
    per_port = {next(iter(ports)): size for ports, size in alone.items()}
    best = max(alone.values(), default=0.0)
    for ports in sets:
        if len(ports) > 1:
            inside = sum(size for other, size in big.items() if other <= ports)
            best = max(best, (inside + sum(per_port.get(port, 0.0) for port in ports)) / len(ports))
    return best


def _components(sets: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Unions of the sets that hang together."""
    out: list[set[int]] = []
    for ports in sets:
        joined = set(ports)
        rest = []
        for other in out:
            if other & joined:
                joined |= other
            else:
                rest.append(other)
        out = [*rest, joined]
    return [frozenset(ports) for ports in out]
