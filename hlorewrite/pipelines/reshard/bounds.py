"""Lower bounds that no plan can beat, whatever it sends and in whatever order.

Every slice enters each host that lacks it at least once, and leaves a port of a holder at least once, in one
message or more. The time of these messages on a set of ports, over the number of ports, bounds the makespan. When the
slice that leaves last for the first time has left, at most one host for each port of its holders has it or will get it.
From then on holders send it again after each message's overhead, and hosts that got it after that and the latency (the
postal model of Bar-Noy and Kipnis, 1992): the time until all hosts have it comes on top.

Few large messages and many small ones both take time. Number the K messages that bring bytes by when they end, D_1 to
D_K, with s_1 to s_K new bytes; P ports take o and s_i / B for each, so P D_i >= s_1 / B + ... + s_i / B + i o. The
bytes of message i and of those after it have further to go at D_i, at c seconds a byte:

    end >= D_i + c (s_i + ... + s_K) + rest.

* From P ports to the same n > P hosts: none of them has it before D_i, and P at most are getting it. The last of the
  others begins when all can have got a message, less o, and takes it in by e ports: c = 1 / (e B), rest = postal time.
* To m devices of one host: it arrives by P ports, and m - 1 copies of it go to the M devices of the host by their
  links: c = (m - 1) / (M B_local), rest = the latency inside the host.

``_least_excess`` solves this for the best K and sizes. It lets K messages share the ports evenly; in truth each port
takes the whole overhead of its own. ``_average_end`` asks for the mean over bytes instead: with R(t) bytes in messages
that end at t or later, end - rest = E >= t + c R(t) for every t, so

    sum of s_i D_i = integral of R <= integral of min(S, (E - t) / c) = S E - c S^2 / 2, if E >= c S; else E^2 / (2 c).

A port with messages of y_1 to y_k seconds, A in all, has a mean D of A / 2 + (sum of y_i^2 / 2 + o sum of i y_i) / A.
That is least for y_i = lambda - i o. Times A it is convex in A, so equal ports are best.
"""

import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from hlorewrite.pipelines.reshard.jobs import Jobs, PortClass
from hlorewrite.pipelines.reshard.network import Network

_LARGEST_EXPONENT = 400.0
"""The largest exponent of powers that are still floats when they are added up."""


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
               _time_of_blocks(jobs, network), _time_into_hosts(jobs, network)) + network.latency_s


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
    return max(max(busy, default=0.0), *map(_densest, _loads(jobs, np.array(busy)))) + network.latency_s


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
        # Where receivers are next to holders, they can send too, through any port of the host.
        first = len(have.hosts) * network.nics_per_host if local else len(have.ports)
        kinds.add((len(want.hosts), first, max(map(len, want.hosts))))
    return min((_postal_time(*kind, network) for kind in kinds), default=0.0)


def _time_of_blocks(jobs: Jobs, network: Network) -> float:
    """A bound on the time of messages of any sizes to hosts that want everything: the largest over sets of holders with
    the same ports, and over all ports together.
    """
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

    @cache
    def common(kinds: frozenset[int]) -> tuple[int, int]:
        return _hosts_of_all([jobs.classes[each] for each in kinds], network.nics_per_host)

    return max(_blocks_of(len(ports), sum(sizes[each] for each in holders),
                          common(frozenset().union(*(wanted[each] for each in holders))), network)
               for ports, holders in groups.items())


def _hosts_of_all(wanting: list[PortClass], nics: int) -> tuple[int, int]:
    """How many hosts want what each of some classes does, and by how many ports one of them takes it at most."""
    hosts = set.intersection(*({into[0] // nics for into in kind.hosts} for kind in wanting))
    entries: dict[int, set[int]] = {}
    for kind in wanting:
        for into in kind.hosts:
            entries.setdefault(into[0] // nics, set()).update(into)
    return len(hosts), max((len(entries[host]) for host in hosts), default=0)


def _blocks_of(ports: int, size: float, common: tuple[int, int], network: Network) -> float:
    """Seconds for bytes that leave by some ports, each to the same hosts; 0 if they do not."""
    hosts, most = common
    if hosts <= ports:
        return 0.0
    return (_least_end(size, ports, 1 / (most * network.bytes_per_s), 1, network)
            + _postal_time(hosts, ports, most, network))


def _time_into_hosts(jobs: Jobs, network: Network) -> float:
    """The longest time that a host takes to get everything through its ports and pass it on to all its devices."""
    devices, away = np.bincount(network.host), ~jobs.inside
    wanted: dict[int, list[tuple[tuple[int, ...], int, float, int]]] = {}
    sizes, counts = (np.bincount(jobs.receivers[away], values[away], minlength=len(jobs.classes)).tolist()
                     for values in (jobs.size, jobs.counts))
    for receivers in set(jobs.receivers[away].tolist()):
        kind = jobs.classes[receivers]
        for ports in kind.hosts:
            wanted.setdefault(ports[0] // network.nics_per_host, []).append(
                (ports, kind.least, sizes[receivers], int(counts[receivers])))
    kinds = {(len(set().union(*(ports for ports, *_ in each))), min(least for _, least, _, _ in each),
              sum(size for *_, size, _ in each), sum(count for *_, count in each), int(devices[host]))
             for host, each in wanted.items()}
    return max((_into_host(*kind, network) for kind in kinds), default=0.0)


def _into_host(ports: int, receivers: int, size: float, count: int, devices: int, network: Network) -> float:
    """Seconds for bytes that enter a host by some ports, each for so many of its devices; 0 if for one."""
    if receivers == 1:
        return 0.0
    after = (receivers - 1) / (devices * network.local_bytes_per_s)
    return _least_end(size, ports, after, count, network) + network.local_latency_s


def _least_end(size: float, ports: int, after: float, count: int, network: Network) -> float:
    """The earliest end of bytes that some ports bring in at least so many messages and that then take ``after`` seconds
    a byte.
    """
    per_byte, overhead = 1 / (ports * network.bytes_per_s), network.chunk_overhead_s
    return max(size * per_byte + _least_excess(size, per_byte, after, overhead / ports, count),
               _average_end(size * per_byte, size * after, overhead))


def _least_excess(size: float, per_byte: float, after: float, overhead: float, count: int) -> float:
    """How far the end is above ``size * per_byte`` at least, for the best number and sizes of messages.

    With Q_i bytes after message i, an end of ``size * per_byte + x`` allows
    Q_(i-1) = r Q_i + (x - i * overhead) / after at most, for r = per_byte / after and Q_K = 0. Q_0 must reach the
    size, and x is at least K * overhead.

    Args:
      size: bytes.
      per_byte: seconds that a byte takes the ports.
      after: seconds a byte from there on.
      overhead: seconds that a message takes the ports in addition.
      count: messages at least.

    Example:
      >>> _least_excess(8.0, 1.0, 1.0, 1.0, 1)
      4.5
    """
    if not after:
        return count * overhead
    ratio, best = per_byte / after, math.inf
    if count * math.log(max(ratio, 1.0)) > _LARGEST_EXPONENT:
        return count * overhead
    power = weights = weighted = 0.0
    # Ends: K * overhead alone reaches any value.
    for messages in itertools.count(1):
        power = power * ratio if messages > 1 else 1.0
        weights, weighted = weights + power, weighted + messages * power
        if messages < count:
            continue
        excess = max((size * after + overhead * weighted) / weights, messages * overhead)
        if excess >= best or power * ratio > math.exp(_LARGEST_EXPONENT):
            return min(best, excess)
        best = excess
    raise AssertionError("messages have an overhead")


def _average_end(seconds: float, further: float, overhead: float) -> float:
    """The earliest time at which the last bytes can have been passed on, from the mean time at which bytes arrive.

    Args:
      seconds: what all bytes take each of some ports.
      further: what all bytes take from there on.
      overhead: seconds that a message takes its port in addition.

    Example:
      Two messages of 5 and 3 s arrive at 6 and 10 s, bytes at 7.5 s on average; they take 8 s more.

      >>> _average_end(8.0, 8.0, 1.0) <= 7.5 + 4.0
      True
    """
    if not seconds:
        return 0.0
    number = np.arange(1, int((1 + math.sqrt(1 + 8 * seconds / overhead)) / 2) + 1)
    pieces = (seconds + overhead * number.sum()) / len(number) - overhead * number
    mean = seconds / 2 + float((pieces ** 2 / 2 + overhead * number * pieces).sum()) / seconds
    end = further / 2 + mean
    return end if end >= further else math.sqrt(2 * further * mean)


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
    parent: dict[int, int] = {}

    def root(port: int) -> int:
        # Ends: each step goes nearer to the root.
        while parent.setdefault(port, port) != port:
            parent[port] = port = parent[parent[port]]
        return port

    for ports in sets:
        first = None
        for port in ports:
            if first is None:
                first = root(port)
            else:
                parent[root(port)] = first
    joined: dict[int, set[int]] = {}
    for port in parent:
        joined.setdefault(root(port), set()).add(port)
    return [frozenset(ports) for ports in joined.values()]
