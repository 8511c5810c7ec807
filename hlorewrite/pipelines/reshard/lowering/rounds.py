"""Rounds of messages: what each device sends and receives, step by step.

A message is one chunk on one hop. In a round every device sends at most one message and receives at most one.
A chain of n receivers with K chunks is n hops, each K rounds long and one round after the one before.
Rounds order the program; devices without a message in a round do not wait for it.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.reshard.lowering.flows import SliceFlow, box_of, messages
from hlorewrite.pipelines.reshard.plan import ReshardPlan
from hlorewrite.pipelines.reshard.transfers import by_host
from hlorewrite.pipelines.reshard.trees.block_sends import BlockSend
from hlorewrite.pipelines.reshard.trees.schedule import Rail, rails_of

CollectiveKind = Literal["permute", "broadcast", "gather"]
MOST_HOPS = 50_000


@dataclass(frozen=True)
class Hop:
    """One link of a flow: chunk ``k`` crosses it in round ``first + k``.

    Args:
      flow: which flow.
      sender: device that sends.
      receivers: devices that receive: one, or all at once for a multicast.
      first: the round of the first chunk.
      forwarded: whether the sender reads its destination buffer.
      gathers: whether all devices of the sender's host get what some of them send, at once.
    """

    flow: SliceFlow
    sender: int
    receivers: tuple[int, ...]
    first: int
    forwarded: bool
    gathers: bool = False

    @property
    def kind(self) -> CollectiveKind:
        """The collective that carries it."""
        return "gather" if self.gathers else "broadcast" if self.flow.multicast else "permute"

    @property
    def last(self) -> int:
        """One past the round of the last chunk."""
        return self.first + self.flow.chunks


@dataclass(frozen=True)
class Run:
    """Rounds in which the same hops are active; they become one loop.

    Args:
      hops: the active hops, all with messages of one shape and of one kind.
      first: first round.
      count: number of rounds.
    """

    hops: tuple[Hop, ...]
    first: int
    count: int

    @property
    def kind(self) -> CollectiveKind:
        """The collective that carries its messages."""
        return self.hops[0].kind

    @property
    def message(self) -> tuple[int, ...]:
        """Shape of its messages."""
        return self.hops[0].flow.message


def schedule(plan: ReshardPlan, ordered_flows: Sequence[tuple[int, SliceFlow, tuple[int, ...]]],
             gathers: bool = False) -> list[Hop]:
    """Gives every hop its rounds: in the plan's order, as early as devices and NIC ports allow.

    Rows of one job may share a NIC port, as their devices move different chunks side by side; rows of another
    job wait for it, as planned.

    Args:
      plan: the plan.
      ordered_flows: its flows.
      gathers: whether the devices of a host gather what arrives at several of its ports.

    Returns:
      The hops.

    Raises:
      PlanError: there are too many for one program.
    """
    slots = _FreeRounds(plan)
    for fan in fans(plan, ordered_flows) if gathers else ([flow] for flow in ordered_flows):
        if len(slots.hops) > MOST_HOPS:
            raise PlanError(f"the plan has more than {MOST_HOPS} hops: too many for one program",
                            hint="reshard fewer devices at a time")
        if len(fan) == 1:
            slots.place(*fan[0])
        else:
            slots.place_fan(fan)
    return slots.hops


@dataclass
class _FreeRounds:
    """The hops so far, and the round from which each device and NIC link is free."""

    plan: ReshardPlan
    hops: list[Hop] = field(default_factory=list)
    sends: dict[int, int] = field(default_factory=dict)
    receives: dict[int, int] = field(default_factory=dict)
    links: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    def place(self, row: int, flow: SliceFlow, before: tuple[int, ...]) -> None:
        """The hops of a flow, each one round after the one before."""
        ways = _ways(flow)
        job = int(self.plan.job[row])
        first = max((self.ends.get(r, 0) for r in before), default=0)
        for shift, (sender, receivers) in enumerate(ways):
            first = max(first, self.sends.get(sender, 0) - shift,
                        *(self.receives.get(device, 0) - shift for device in receivers))
            for link in _crossed(self.plan, sender, receivers):
                owner, free, last = self.links.get(link, (job, 0, 0))
                first = max(first, (free if owner == job else last) - shift)
        for shift, (sender, receivers) in enumerate(ways):
            hop = Hop(flow, sender, receivers, first + shift, flow.forwarded or shift > 0)
            self.hops.append(hop)
            self.sends[sender] = hop.last
            for device in receivers:
                self.receives[device] = hop.last
            if flow.multicast:  # a broadcast keeps all its devices busy both ways
                self._keep_busy((sender, *receivers), hop.last)
            for link in _crossed(self.plan, sender, receivers):
                owner, free, last = self.links.get(link, (job, 0, 0))
                self.links[link] = (job, free if owner == job else last, max(last, hop.last))
            self.ends[row] = max(self.ends.get(row, 0), hop.last)

    def place_fan(self, fan: Sequence[tuple[int, SliceFlow, tuple[int, ...]]]) -> None:
        """Chains from port to port at the same time; when the last has arrived, the devices of each host gather."""
        entries = [entries_of(self.plan, flow) for _, flow, _ in fan]
        for (row, flow, before), entry in zip(fan, entries, strict=True):
            self.place(row, replace(flow, devices=(flow.devices[0], *entry), multicast=False), before)
        devices = fan[0][1].devices[1:]
        first = max(*(self.ends[row] for row, _, _ in fan),
                    *(max(self.sends.get(d, 0), self.receives.get(d, 0)) for d in devices))
        host = self.plan.network.host
        for (row, flow, _), entry in zip(fan, entries, strict=True):
            for device in entry:
                others = tuple(d for d in flow.devices[1:] if host[d] == host[device] and d != device)
                self.hops.append(Hop(replace(flow, multicast=False), device, others, first, True, gathers=True))
            self.ends[row] = self.hops[-1].last
        self._keep_busy(devices, self.hops[-1].last)

    def _keep_busy(self, devices: Sequence[int], until: int) -> None:
        for device in devices:
            self.sends[device] = self.receives[device] = until


def entries_of(plan: ReshardPlan, flow: SliceFlow) -> tuple[int, ...]:
    """The first receiver on each host, in the order of the chain."""
    return tuple(devices[0] for devices in by_host(flow.devices[1:], plan.network).values())


def fans(plan: ReshardPlan, ordered_flows: Sequence[tuple[int, SliceFlow, tuple[int, ...]]]
         ) -> list[list[tuple[int, SliceFlow, tuple[int, ...]]]]:
    """Groups flows to the same devices through different ports, as many as can run at the same time.

    Args:
      plan: the plan.
      ordered_flows: its flows.

    Returns:
      The flows, in the order of the first of each fan; a flow that no other goes with is alone.
    """
    out: list[list[tuple[int, SliceFlow, tuple[int, ...]]]] = []
    latest: dict[tuple[object, ...], int] = {}
    used: list[set[int]] = []
    for each in ordered_flows:
        _, flow, before = each
        entries = entries_of(plan, flow)
        key = frozenset(flow.devices[1:]), flow.message, flow.chunks
        ends = {flow.devices[0], *entries}
        fit = flow.multicast and not before and len(flow.devices) - 1 > len(entries)
        if fit and key in latest and not used[latest[key]] & ends:
            out[latest[key]].append(each)
            used[latest[key]] |= ends
            continue
        if fit:
            latest[key] = len(out)
        out.append([each])
        used.append(ends)
    return out


def _ways(flow: SliceFlow) -> list[tuple[int, tuple[int, ...]]]:
    if flow.multicast:
        return [(flow.devices[0], flow.devices[1:])]
    return [(a, (b,)) for a, b in itertools.pairwise(flow.devices)]


def _crossed(plan: ReshardPlan, sender: int, receivers: tuple[int, ...]) -> list[int]:
    """NIC links between the hosts of a hop: out of the sender's port, into the receivers'."""
    host, port = plan.network.host, plan.network.port
    away = [r for r in receivers if host[r] != host[sender]]
    return [2 * int(port[sender]), *(2 * int(port[r]) + 1 for r in away)] if away else []


def runs(hops: Sequence[Hop]) -> list[Run]:
    """Groups rounds in which the same hops are active.

    Args:
      hops: the hops with their rounds.

    Returns:
      The runs in program order; those of one stretch of rounds differ in message shape or kind.
    """
    edges = sorted({edge for hop in hops for edge in (hop.first, hop.last)})
    by_first = sorted(hops, key=lambda hop: hop.first)
    active: list[Hop] = []
    out: list[Run] = []
    at = 0
    for lo, hi in itertools.pairwise(edges):
        # Ends: each round passes a hop.
        while at < len(by_first) and by_first[at].first <= lo:
            active.append(by_first[at])
            at += 1
        active = [hop for hop in active if hop.last > lo]
        kinds: dict[tuple[tuple[int, ...], str], list[Hop]] = {}
        for hop in active:
            kinds.setdefault((hop.flow.message, hop.kind), []).append(hop)
        out += [Run(tuple(kind), lo, hi - lo) for kind in kinds.values()]
    return out


# ---- rounds of messages for plans of the strategy ``trees``: every block goes its own way


Block = tuple[int, int]
"""Row, and number in the row."""


@dataclass
class _Slots:
    """The rounds in which devices send and receive, and the round from which each has each block."""

    there: dict[tuple[int, Block], int]
    sends: dict[int, set[int]] = field(default_factory=dict)
    receives: dict[int, set[int]] = field(default_factory=dict)

    def place(self, sender: int, receiver: int, block: Block) -> int:
        """The first round in which the sender has the block and both are free; it is taken."""
        out, into = self.sends.setdefault(sender, set()), self.receives.setdefault(receiver, set())
        # Ends: both sets are finite.
        at = next(number for number in itertools.count(self.there[sender, block])
                  if number not in out and number not in into)
        out.add(at)
        into.add(at)
        self.there[receiver, block] = at + 1
        return at


def message_of_trees(plan: ReshardPlan) -> int:
    """The size of a block, in bytes, that keeps the program of a plan small enough."""
    most = max(1, min(int(plan.chunks.max(initial=1)), 3 * MOST_HOPS // (4 * max(sum(_receivers(plan)), 1))))
    return -(-int(plan.rows.size.max(initial=1)) // most)


def tree_hops(plan: ReshardPlan, message_bytes: int) -> list[Hop] | None:
    """Every block on every link, in rounds in which each device sends at most one and receives at most one.

    Args:
      plan: a plan of the strategy ``trees``.
      message_bytes: bytes of a block at most.

    Returns:
      The hops; None if there are too many for one program.
    """
    boxes = [box_of(plan, row) for row in range(len(plan.rows))]
    shapes = messages([extent for _, extent in boxes], plan.itemsize, message_bytes)
    whole = [SliceFlow(*box, shape, (), False, False) for box, shape in zip(boxes, shapes, strict=True)]
    counts = [flow.chunks for flow in whole]
    if sum(count * each for count, each in zip(counts, _receivers(plan), strict=True)) > MOST_HOPS:
        return None
    sources = plan.sender.tolist()
    slots = _Slots({(sources[row], (row, number)): 0 for row, count in enumerate(counts) for number in range(count)})
    hops: list[Hop] = []
    for rail, send, block in _in_turn(rails_of(plan.rows, plan.network), counts):
        source = _at(plan, rail, block[0], send.sender, send.out)[0] if send.sender else sources[block[0]]
        start = whole[block[0]].chunk_start(np.array([block[1]]))[0].tolist()
        part = SliceFlow(tuple(start), whole[block[0]].message, whole[block[0]].message, (), False, False)
        for before, after in itertools.pairwise((source, *_at(plan, rail, block[0], send.receiver, send.into))):
            hops.append(Hop(part, before, (after,), slots.place(before, after, block),
                            bool(send.sender) or before != source))
    return hops


def _receivers(plan: ReshardPlan) -> list[int]:
    """How many receivers each row has."""
    return [len(plan.rows.groups[group]) for group in plan.rows.receivers.tolist()]


def _in_turn(rails: Sequence[Rail], counts: Sequence[int]) -> Iterator[tuple[Rail, BlockSend, Block]]:
    """The sends of all rails, round by round, and the block each is of."""
    plans = [rail.sends(counts) for rail in rails]
    blocks = [rail.blocks(counts) for rail in rails]
    for number in range(max(map(len, plans), default=0)):
        for rail, plan, own in zip(rails, plans, blocks, strict=True):
            for send in plan[number] if number < len(plan) else ():
                yield rail, send, own[send.stream][send.block]


def _at(plan: ReshardPlan, rail: Rail, row: int, host: int, lane: int) -> tuple[int, ...]:
    """The receivers of a row on a host, numbered from 1: the one at a port of the rail first."""
    network, port = plan.network, rail.ports[host - 1][lane]
    here = [d for d in plan.rows.groups[plan.rows.receivers[row]]
            if int(network.host[d]) == port // network.nics_per_host]
    return tuple(sorted(here, key=lambda d: (int(network.port[d]) != port, d)))
