"""One class of collectives that may share calls, and the best buckets for it."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.cost.kernels.clock import KernelClock
from hlorewrite.ir import BY_KIND, ir, users
from hlorewrite.passes.all_reduce_fusion.members import Member, carried_bytes, carrier_of
from hlorewrite.passes.all_reduce_fusion.model import Costs, FusionItem, FusionPlan, Limits
from hlorewrite.passes.all_reduce_fusion.periodic import alike_plan
from hlorewrite.passes.all_reduce_fusion.plan import held_plan
from hlorewrite.passes.all_reduce_fusion.schedule import Bucket
from hlorewrite.passes.all_reduce_fusion.times import timed
from hlorewrite.passes.common.block_graph import BlockGraph, Timing
from hlorewrite.passes.common.separate_copies import copied_for, copied_from
from hlorewrite.util.hash_consed_sets import NONE, meet, union

# ---- buckets for loops whose collectives fill most of an iteration, where every call and every copy adds to the step


def crowded_plan(items: Sequence[FusionItem], costs: Costs) -> FusionPlan:
    """Puts the smallest members into one call and leaves the others alone, minimising the time of calls and copies.

    Nothing hides a call there, so the objective is the sum of calls and copies. A member that joins saves the latency
    of its call, whatever its size, but its copies take time in proportion to its size. So the smallest join.

    Args:
      items: the members.
      costs: the costs of calls and copies.

    Returns:
      The plan, with its times; among equals, the one with fewer calls.

    Example:
      >>> items = [FusionItem(0.0, 9.0, size) for size in (1, 100, 2)]
      >>> crowded_plan(items, Costs(lambda size: 5.0 + size, copy_in=0.5)).buckets  # 100 would be copied for 50
      ((0, 2), (1,))
      >>> crowded_plan(items, Costs(lambda size: 5.0 + size)).buckets
      ((0, 1, 2),)
    """
    import numpy as np
    order = sorted(range(len(items)), key=lambda place: (items[place].size, place))
    sizes = np.array([items[place].size for place in order], float)
    joined = np.cumsum(sizes)
    alone = np.asarray(costs.call(sizes), float)
    rest = alone.sum() - np.cumsum(alone)  # calls of those that do not join
    takes = np.asarray(costs.call(joined), float) + (costs.copy_in + costs.copy_out) * joined + rest
    takes[0] = alone.sum()  # a single member is not copied
    count = len(items) - int(np.argmin(takes[::-1])) if items else 0
    together = tuple(sorted(order[:count]))
    buckets: list[tuple[int, ...]] = [together] if together else []
    buckets += [(place,) for place in order[count:]]
    return timed(items, sorted(buckets), costs)


# ---- one class of collectives that may share calls, and the best buckets for it


@dataclass(frozen=True)
class BucketClass:
    """Members of a block with equal key and family.

    Attributes:
      indices: indices of these members among the block's, in program order.
      members: all members of the block.
      timings: when each of them is ready and needed.
      graph: their dependences.
      ends: when the kernels end that calls can be tied to.
      alike: whether equal layers should get equal buckets.
      crowded: whether its collectives fill most of the iteration of a loop.
    """

    indices: tuple[int, ...]
    members: Sequence[Member]
    timings: Sequence[Timing]
    graph: BlockGraph
    ends: tuple[float, ...] = ()
    alike: bool = False
    crowded: bool = False


@dataclass(frozen=True)
class Choice:
    """The buckets chosen for a class.

    Attributes:
      members: the members of the class.
      buckets: who shares a call.
      plan: its times by the model.
      alone: times by the model with one call for each member.
      costs: the costs of calls and copies, and the margin with which calls are held.
    """

    members: tuple[int, ...]
    buckets: tuple[Bucket, ...]
    plan: FusionPlan
    alone: FusionPlan
    costs: Costs


def choose(bucket_class: BucketClass, times: CollectiveTimes, clock: KernelClock, limits: Limits) -> Choice:
    """The best buckets of a class; members of different element types share calls only if that is better.

    Args:
      bucket_class: the class.
      times: the model of the cluster.
      clock: the clock, for the time of copies.
      limits: what the user asked for.

    Returns:
      The choice.
    """
    members = bucket_class.members
    elements = frozenset(members[index].element for index in bucket_class.indices)
    first = members[bucket_class.indices[0]]
    carrier = carrier_of(first.reduction, elements) if first.reduction else ""
    options = []
    if carrier is not None:
        options.append(_planned(bucket_class, bucket_class.indices, carrier, times, clock, limits))
    if len(elements) > 1 and first.reduction:
        parts = [_planned(bucket_class, tuple(i for i in bucket_class.indices if members[i].element == element),
                          element, times, clock, limits) for element in sorted(elements)]
        options.append(_together(bucket_class.indices, parts))
    return min(options, key=lambda choice: (choice.plan.exposed, choice.plan.busy))


def _planned(bucket_class: BucketClass, indices: tuple[int, ...], carrier: str, times: CollectiveTimes,
             clock: KernelClock, limits: Limits) -> Choice:
    members, graph, timings = bucket_class.members, bucket_class.graph, bucket_class.timings
    order = sorted(indices, key=lambda i: (timings[i].ready, timings[i].needed, graph.places[i]))
    read = functools.reduce(union, (graph.before[index] for index in indices), NONE)
    items = []
    for index, after in zip(order, graph.latest(order), strict=True):
        size = carried_bytes(members[index], carrier) if carrier else members[index].payload
        timing = timings[index]
        free = after < 0 and timing.needed >= graph.end and not meet(read, graph.numbers.single(index))
        items.append(FusionItem(timing.ready, timing.needed, size, after, free, reading=graph.readings[index]))
    costs = call_costs([members[index] for index in indices], times, clock)
    costs = replace(costs, ends=bucket_class.ends)
    plan, margin = (crowded_plan(items, costs), costs.margin) if bucket_class.crowded else held_plan(
        items, costs, limits)
    costs = replace(costs, margin=margin)
    if bucket_class.alike and not bucket_class.crowded:
        kinds = [members[index].op.operands[0].type for index in order]
        plan = alike_plan(items, kinds, plan, costs, limits)
    alone = timed(items, [(position,) for position in range(len(items))], costs)
    buckets = tuple(tuple(order[position] for position in bucket) for bucket in plan.buckets)
    return Choice(indices, buckets, plan, alone, costs)


def call_costs(members: Sequence[Member], times: CollectiveTimes, clock: KernelClock) -> Costs:
    """The costs of calls of a class; several members are copied in and out, with a read and a write each time.

    Args:
      members: the members of the class.
      times: the model of the cluster.
      clock: the clock, for the time of copies.

    Returns:
      Seconds of calls, and seconds to copy a byte of payload; copies that XLA fuses take none.
    """
    first = members[0]
    size, larger = len(first.groups[0]), BY_KIND[first.kind].larger
    into = size if larger == "result" else 1  # the payload is the larger side
    out = size if larger == "operand" else 1
    once = 2.0 / clock.memory_bytes_per_s
    total = sum(member.payload for member in members) or 1
    copied = [sum(member.payload for member in members if copies(member.op)) / total
              for copies in (copied_in, copied_out)]
    return Costs(times.curve(first.kind, first.groups), once / into * copied[0], once / out * copied[1],
                 one_by_one=larger == "result")


def _together(indices: tuple[int, ...], parts: Sequence[Choice]) -> Choice:
    """Merges several choices: at worst, calls of different classes run one after another."""
    def total(plans: Sequence[FusionPlan]) -> FusionPlan:
        return FusionPlan((), sum(plan.exposed for plan in plans), sum(plan.busy for plan in plans))
    return Choice(indices, tuple(bucket for part in parts for bucket in part.buckets),
                  total([part.plan for part in parts]), total([part.alone for part in parts]),
                  min((part.costs for part in parts), key=lambda costs: costs.margin))


# ---- copies into and out of a bucket's buffer that are separate kernels


def copied_in(op: ir.Operation) -> bool:
    """Whether copying a collective's operand into a buffer takes a separate kernel.

    Args:
      op: the collective.

    Returns:
      False if an elementwise op that nothing else reads makes the operand.
    """
    value = op.operands[0]
    return copied_from(value) or len(users(value)) != 1


def copied_out(op: ir.Operation) -> bool:
    """Whether copying a collective's result out of a buffer takes a separate kernel.

    Args:
      op: the collective.

    Returns:
      False if only elementwise ops read the result.
    """
    readers = [reader for reader, _ in users(op.results[0])]
    return not readers or any(map(copied_for, readers))
