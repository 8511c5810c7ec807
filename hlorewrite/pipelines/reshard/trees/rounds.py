"""Rounds of messages for plans of the strategy ``trees``: every block goes its own way."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from hlorewrite.pipelines.reshard.lowering.flows import SliceFlow, box_of, messages
from hlorewrite.pipelines.reshard.lowering.rounds import MOST_HOPS, Hop
from hlorewrite.pipelines.reshard.plan import ReshardPlan
from hlorewrite.pipelines.reshard.trees.block_sends import BlockSend
from hlorewrite.pipelines.reshard.trees.schedule import Rail, rails_of

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
