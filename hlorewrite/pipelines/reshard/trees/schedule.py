"""The strategy ``trees``: slices that go to the same hosts, in blocks that each use a separate tree.

In a chain the last of n hosts gets its first block after n hops; here after about log2(n), or fewer where each host
gets all slices and so can pass a block on through any of its ports.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.reshard.assign import Arrivals, with_copies
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.transfers import SliceTransfers
from hlorewrite.pipelines.reshard.trees.block_sends import BlockSend, block_sends

_MOST_SENDS = 100_000
_LEAST_HOSTS = 3


@dataclass(frozen=True)
class Rail:
    """Rows that enter each receiving host through the same ports.

    Args:
      streams: the rows that follow each other, block by block, for each port.
      ports: the ports through which they enter each host, in the order of the hosts.
    """

    streams: tuple[tuple[int, ...], ...]
    ports: tuple[tuple[int, ...], ...]

    def sends(self, blocks: Sequence[int]) -> tuple[tuple[BlockSend, ...], ...]:
        """The rounds, given the number of blocks of each row of the plan."""
        counts = tuple(sum(blocks[row] for row in stream) for stream in self.streams)
        return block_sends(len(self.ports), counts, int(len(self.streams) > 1))

    def blocks(self, blocks: Sequence[int]) -> list[list[tuple[int, int]]]:
        """Per stream, its blocks in order, as (row, number in the row): their rows alternate."""
        return [[(row, number) for number, _, row in sorted(
            (number, place, row) for place, row in enumerate(stream) for number in range(blocks[row]))]
            for stream in self.streams]


@dataclass(frozen=True)
class TreesSchedule:
    """Rows in trees.

    Args:
      sender: the device (position in ``Network.devices``) that sends each row, shape ``[rows]``.
      entry: the port by which most of a row enters each host, shape ``[rows, hosts]``.
      blocks: blocks of each row.
      end: when the last receiver has each row, seconds, shape ``[rows]``.
    """

    sender: np.ndarray
    entry: np.ndarray
    blocks: int
    end: np.ndarray


def trees_schedule(rows: SliceTransfers, network: Network) -> TreesSchedule:
    """Cuts rows into the number of blocks that is fastest, and simulates every block.

    Args:
      rows: the rows of the strategy ``broadcast``.
      network: the links.

    Returns:
      The schedule.

    Raises:
      PlanError: trees do not serve these rows, or are too large to plan.
    """
    sender, rails = senders_of(rows, network), rails_of(rows, network)
    hosts, size, depth, longest = _longest_stream(rails, rows)
    depth += len(rails[0].streams) > 1
    best = math.sqrt(depth * size / network.bytes_per_s / network.chunk_overhead_s) / longest
    counts = sorted({max(1, round(best * factor)) for factor in (0.8, 1.0, 1.25)})
    if counts[-1] * len(rows) * hosts > _MOST_SENDS:
        raise PlanError(f"trees would need more than {_MOST_SENDS} messages", hint="use broadcast or send-recv")
    blocks = min(counts, key=lambda count: simulated(rails[:1], sender, rows, count, network).max())
    end = simulated(rails, sender, rows, blocks, network)
    entry = np.zeros((len(rows), hosts), np.int64)
    for rail in rails:
        for lane, stream in enumerate(rail.streams):
            entry[list(stream)] = [ports[lane] for ports in rail.ports]
    return TreesSchedule(sender, entry, blocks, end)


def least_trees_time(rows: SliceTransfers, network: Network) -> float:
    """The least time of a broadcast in trees, with the best number of blocks, in seconds.

    K blocks of t / K seconds and an overhead o need K + d - 1 rounds, with d of them for the last block: at the best K
    that is (sqrt(t) + sqrt(o (d - 1)))^2 seconds.

    Args:
      rows: the rows of the strategy ``broadcast``.
      network: the links.

    Raises:
      PlanError: trees do not serve these rows.
    """
    _, size, depth, _ = _longest_stream(rails_of(rows, network), rows)
    seconds = size / network.bytes_per_s
    return (math.sqrt(seconds) + math.sqrt(network.chunk_overhead_s * max(depth - 1, 0.0))) ** 2


def _longest_stream(rails: Sequence[Rail], rows: SliceTransfers) -> tuple[int, float, float, int]:
    """Hosts, bytes of the longest stream, rounds in which a block reaches all hosts, rows of the stream."""
    hosts, lanes = len(rails[0].ports), len(rails[0].streams)
    longest = max((stream for rail in rails for stream in rail.streams), key=lambda each: rows.size[list(each)].sum())
    return hosts, float(rows.size[list(longest)].sum()), math.log(hosts + 1, lanes + 1), len(longest)


def senders_of(rows: SliceTransfers, network: Network) -> np.ndarray:
    """The device that sends each row: the one whose port has the least to send so far; shape ``[rows]``."""
    sent, chosen = np.zeros(network.ports), []
    for row in range(len(rows)):
        device = min(rows.groups[rows.holders[row]], key=lambda d: (sent[network.port[d]], d))
        sent[network.port[device]] += rows.size[row]
        chosen.append(device)
    return np.array(chosen, np.int64)


def rails_of(rows: SliceTransfers, network: Network) -> tuple[Rail, ...]:
    """Rows by the ports at which they enter hosts.

    Args:
      rows: the rows of the strategy ``broadcast``.
      network: the links.

    Returns:
      One rail with a stream for each port where every row is wanted at all of them, else a rail for each port.

    Raises:
      PlanError: the rows are not broadcasts from some hosts to others, the same for all.
    """
    receivers = {group: _lanes(rows.groups[group], network) for group in set(rows.receivers.tolist())}
    hosts = {tuple(sorted({int(network.host[d]) for d in rows.groups[group]})) for group in receivers}
    sending = {int(network.host[d]) for group in set(rows.holders.tolist()) for d in rows.groups[group]}
    if len(hosts) != 1 or len(to := next(iter(hosts))) < _LEAST_HOSTS or sending & set(to):
        raise PlanError(f"trees need slices that all go to the same hosts, at least {_LEAST_HOSTS}, none of which "
                        "sends one", hint="use broadcast")
    nics = network.nics_per_host
    lanes = next(iter(receivers.values()))
    if set(receivers.values()) == {lanes} and len(rows) >= len(lanes) > 1:
        streams = tuple(tuple(range(lane, len(rows), len(lanes))) for lane in range(len(lanes)))
        return (Rail(streams, tuple(tuple(host * nics + lane for lane in lanes) for host in to)),)
    of_lane: dict[int, list[int]] = {}
    for row in range(len(rows)):
        least = min(receivers[int(rows.receivers[row])], key=lambda lane: (len(of_lane.get(lane, ())), lane))
        of_lane.setdefault(least, []).append(row)
    # Rails begin with different rows, so that they do not wait for one sending port.
    return tuple(Rail((tuple(of_lane[lane][turn % len(of_lane[lane]):] + of_lane[lane][:turn % len(of_lane[lane])]),),
                      tuple((host * nics + lane,) for host in to)) for turn, lane in enumerate(sorted(of_lane)))


def _lanes(devices: Sequence[int], network: Network) -> tuple[int, ...]:
    """Ports, numbered within their hosts, at which each host has one of the devices."""
    at: dict[int, set[int]] = {}
    for device in devices:
        at.setdefault(int(network.host[device]), set()).add(int(network.port[device]) % network.nics_per_host)
    lanes = set.intersection(*at.values())
    if not lanes:
        raise PlanError("trees need a receiver at the same port of each host", hint="use broadcast")
    return tuple(sorted(lanes))


def simulated(rails: Sequence[Rail], sender: np.ndarray, rows: SliceTransfers, blocks: int,
              network: Network) -> np.ndarray:
    """When the last receiver has each row: every send starts when both its ports are free and its block is there.

    The links of hosts make the copies of blocks in the order in which these arrive.

    Args:
      rails: the rails.
      sender: the device that sends each row.
      rows: the rows.
      blocks: blocks of each row.
      network: the links.

    Returns:
      Seconds of each row, shape ``[rows]``; 0 for rows of other rails.
    """
    out, into = [0.0] * network.ports, [0.0] * network.ports
    there: dict[tuple[int, int, int, int], tuple[float, int]] = {}
    end, came_in = np.zeros(len(rows)), list[tuple[int, int, float]]()
    copies = _copies(rows, network)
    relay = [float(network.local_time(size / blocks, each)) for each, size in zip(copies, rows.size.tolist(),
                                                                                   strict=True)]
    plans = [rail.sends([blocks] * len(rows)) for rail in rails]
    for number in range(max(map(len, plans))):
        for index, (rail, plan) in enumerate(zip(rails, plans, strict=True)):
            for send in plan[number] if number < len(plan) else ():
                row = rail.streams[send.stream][send.block % len(rail.streams[send.stream])]
                port = rail.ports[send.sender - 1][send.out] if send.sender else int(network.port[sender[row]])
                entry = rail.ports[send.receiver - 1][send.into]
                came, by = there.get((index, send.sender, send.stream, send.block), (0.0, port))
                at = max(out[port], into[entry], came + (relay[row] if by != port else 0.0))
                out[port] = into[entry] = at + network.chunk_overhead_s + rows.size[row] / blocks / network.bytes_per_s
                there[index, send.receiver, send.stream, send.block] = out[port] + network.latency_s, entry
                came_in.append((row, entry // network.nics_per_host, out[port] + network.latency_s))
                end[row] = max(end[row], came_in[-1][2] + relay[row])
    row, host, at = (np.array(column) for column in zip(*came_in, strict=True))
    size = np.array(copies)[row] * rows.size[row] / blocks
    if size.any():
        end = with_copies(end, Arrivals(row, host, at, at, np.ones(len(row), np.int64), size), network)
    return end


def _copies(rows: SliceTransfers, network: Network) -> list[int]:
    """Per row, how many other devices of a host want the data that one of them receives."""
    others = [int(np.bincount(network.host[list(group)]).max()) - 1 for group in rows.groups]
    return [others[group] for group in rows.receivers.tolist()]
