"""Lower bounds: what no plan can beat, whatever it sends in which order.

Every slice enters each host that lacks it at least once, and leaves a port of a holder at least once, in one
message or more. The time of these messages on a set of ports, over the number of ports, bounds the makespan. When the
slice that leaves last for the first time has left, at most one host for each port of its holders has it or will get it.
From then on holders send it again after each message's overhead, and hosts that got it after that and the latency (the
postal model of Bar-Noy and Kipnis, 1992): the time until all hosts have it comes on top.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from hlorewrite.plan.reshard.jobs import Jobs
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
    seconds = (jobs.size / network.bytes_per_s + jobs.counts * network.chunk_overhead_s)[away]
    sent = np.bincount(jobs.holders[away], seconds, minlength=len(jobs.classes)).tolist()
    taken = np.bincount(jobs.receivers[away], seconds, minlength=len(jobs.classes)).tolist()
    leaving: dict[frozenset[int], float] = {}
    entering: dict[frozenset[int], float] = {}
    for kind, out, into in zip(jobs.classes, sent, taken, strict=True):
        if out:
            _add(leaving, kind.ports, out)
        for ports in kind.hosts if into else ():
            _add(entering, ports, into)
    used = frozenset().union(*leaving, *entering)
    total = sum(len(kind.hosts) * into for kind, into in zip(jobs.classes, taken, strict=True))
    further = _further_time(jobs, network)
    return max(_densest(leaving) + further, _densest(entering), total / len(used)) + network.latency_s


def _further_time(jobs: Jobs, network: Network) -> float:
    """Seconds that any slice needs at least from its first arrivals until all its hosts have it."""
    least = []
    for holders, receivers in {*zip(jobs.holders[~jobs.inside].tolist(), jobs.receivers[~jobs.inside].tolist(),
                                    strict=True)}:
        have, want = jobs.classes[holders], jobs.classes[receivers]
        # Where receivers stand next to holders, they can send too, by any port of the host.
        first = len(have.hosts) * network.nics_per_host if jobs.inside.any() else len(have.ports)
        least.append(_postal_time(len(want.hosts), first, max(map(len, want.hosts)), network))
    return min(least, default=0.0)


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
