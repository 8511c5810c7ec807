"""One class of collectives that may travel together, and the best buckets for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlorewrite.passes.collective_times import CollectiveTimes
from hlorewrite.passes.compute_clock import ComputeClock
from hlorewrite.passes.fusion_graph import BlockGraph, Timing
from hlorewrite.passes.fusion_members import Member, carried_bytes, carrier_of
from hlorewrite.passes.fusion_plan import Item, Limits, Plan, best_plan
from hlorewrite.passes.fusion_schedule import Bucket

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


@dataclass(frozen=True)
class BucketClass:
    """Members of a block with equal key and family.

    Attributes:
      indices: which of the block's members, in program order.
      members: all members of the block.
      timings: when each of them is ready and needed.
      graph: the order between them.
    """

    indices: tuple[int, ...]
    members: Sequence[Member]
    timings: Sequence[Timing]
    graph: BlockGraph


@dataclass(frozen=True)
class Choice:
    """What was chosen for a class.

    Attributes:
      members: the members of the class.
      buckets: who shares a call.
      plan: the model's times of it.
      alone: the model's times of a call for each member.
    """

    members: tuple[int, ...]
    buckets: tuple[Bucket, ...]
    plan: Plan
    alone: Plan


def choose(found: BucketClass, times: CollectiveTimes, clock: ComputeClock, limits: Limits) -> Choice:
    """The best buckets of a class; members of several element types travel together only where that is better.

    Args:
      found: the class.
      times: the model of the cluster.
      clock: for the time of copies.
      limits: what the user asked for.

    Returns:
      The choice.
    """
    members = found.members
    elements = frozenset(members[index].element for index in found.indices)
    first = members[found.indices[0]]
    carrier = carrier_of(first.reduction, elements) if first.reduction else ""
    options = []
    if carrier is not None:
        options.append(_planned(found, found.indices, carrier, times, clock, limits))
    if len(elements) > 1 and first.reduction:
        parts = [_planned(found, tuple(i for i in found.indices if members[i].element == element), element, times,
                          clock, limits) for element in sorted(elements)]
        options.append(_together(found.indices, parts))
    return min(options, key=lambda choice: (choice.plan.busy, choice.plan.exposed))


def _planned(found: BucketClass, indices: tuple[int, ...], carrier: str, times: CollectiveTimes, clock: ComputeClock,
             limits: Limits) -> Choice:
    members, places, before = found.members, found.graph.places, found.graph.before
    order = sorted(indices, key=lambda i: (found.timings[i].ready, places[i]))
    rank = {index: position for position, index in enumerate(order)}
    items = []
    for position, index in enumerate(order):
        waits = before[index]
        after = max((rank[i] for i in order[:position] if waits >> i & 1), default=-1) if waits else -1
        size = carried_bytes(members[index], carrier) if carrier else members[index].payload
        items.append(Item(found.timings[index].ready, found.timings[index].needed, size, after))
    seconds = _call_seconds(members[indices[0]], times, clock)
    plan = best_plan(items, seconds, limits)
    alone = best_plan(items, seconds, Limits(bucket_bytes=1))
    buckets = tuple(tuple(order[first:after]) for first, after in plan.buckets)
    return Choice(indices, buckets, plan, alone)


def _call_seconds(member: Member, times: CollectiveTimes, clock: ComputeClock) -> Callable[[Array, Array], Array]:
    """Seconds of a call by bytes and members; several members are copied in and out, each time read and written."""
    curve = times.curve(member.kind, member.groups)
    smaller = len(member.groups[0]) if member.kind in ("reduce-scatter", "all-gather") else 1
    copy = 2.0 * (1 + 1 / smaller) / clock.memory_bytes_per_s
    return lambda sizes, count: curve(sizes) + copy * sizes * (count > 1)


def _together(indices: tuple[int, ...], parts: Sequence[Choice]) -> Choice:
    """Several choices as one: calls of different classes run one after another at worst."""
    def total(plans: Sequence[Plan]) -> Plan:
        return Plan((), max(plan.exposed for plan in plans), sum(plan.pressed for plan in plans),
                    sum(plan.busy for plan in plans))
    return Choice(indices, tuple(bucket for part in parts for bucket in part.buckets),
                  total([part.plan for part in parts]), total([part.alone for part in parts]))
