"""The model's times of a plan, and which items are all latency."""

from collections.abc import Sequence

from hlorewrite.passes.all_reduce_fusion.model import Costs, FusionItem, FusionPlan, Limits

_LATENCY_BOUND = 1.1
"""A call that takes at most this many times as long as the shortest is all latency."""
IDLE = 0.5
"""The stream counts as idle if calls take no more than this share of kernel time."""
_SOON = 0.25
"""A wait of up to this share of the shortest call does not count as a delay."""
_STARTED_LATE = 0.5
"""XLA may start a call this share of its time later than possible."""


def soon(costs: Costs) -> float:
    """Seconds that a call may wait for a member.

    Args:
      costs: the costs of calls and copies.

    Returns:
      Seconds.

    Example:
      >>> soon(Costs(lambda size: 4.0 + size))
      1.0
    """
    import numpy as np
    return _SOON * float(costs.call(np.zeros(1))[0])


def compute_time(items: Sequence[FusionItem], costs: Costs) -> float:
    """Seconds of kernels after the first item is ready; 0 if calls are held to none.

    Args:
      items: sorted by ``ready``.
      costs: the costs, with the kernels' ends.

    Returns:
      Seconds.

    Example:
      >>> compute_time([FusionItem(1.0, 9.0, 4)], Costs(lambda size: size, ends=(2.0, 8.0)))
      7.0
    """
    return costs.ends[-1] - items[0].ready if costs.ends and items else 0.0


def timed(items: Sequence[FusionItem], buckets: Sequence[tuple[int, ...]], costs: Costs) -> FusionPlan:
    """The model's times of buckets that run in the given order.

    Args:
      items: the items.
      buckets: every item is in one of them.
      costs: the costs of calls and copies.

    Returns:
      The plan with its times.

    Example:
      >>> one = Costs(lambda size: 0.0 * size + 3.0, copy_in=1.0, copy_out=0.5)
      >>> timed([FusionItem(1.0, 4.0, 1), FusionItem(2.0, 4.0, 1)], [(0, 1)], one)  # in 2 to 4, sent 4 to 7, out 7 to 8
      FusionPlan(buckets=((0, 1),), exposed=4.0, busy=3.0, ends=(7.0,))
    """
    import numpy as np
    free = delay = copies = busy = late = reading = 0.0
    ends = []
    for bucket in buckets:
        members = [items[index] for index in bucket]
        size = float(sum(item.size for item in members))
        copied = size if sum(item.members for item in members) > 1 else 0.0
        took = float(costs.call(np.array([size]))[0])
        delay += copied * costs.copy_in
        copies += copied * (costs.copy_in + costs.copy_out)
        end = max(free, max(item.ready for item in members) + delay) + took
        free = float(costs.over(np.array([end]), np.array([took]), np.array([delay]))[0])
        late = max(late + copied * costs.copy_behind_wait,
                   end + copied * costs.copy_out - reading - min(item.needed for item in members))
        reading += sum(item.reading for item in members)
        busy += took
        ends.append(end)
    # A held call begins later, and calls that are needed earlier are not held: no plan adds more than all it runs.
    return FusionPlan(tuple(buckets), min(max(copies, late), busy + copies), busy, tuple(ends))


def with_waits(items: Sequence[FusionItem], plan: FusionPlan, costs: Costs) -> float:
    """The time that a plan exposes if XLA starts calls late and copies all results out during the last one.

    Its scheduler fills the schedule from the end. Only the copies out of other calls hide the last one, so kernels wait
    for the call before it if that has not ended when the last gradient is ready.

    Args:
      items: the items.
      plan: the plan of the items, with its times.
      costs: the costs of calls and copies.

    Returns:
      Seconds, no less than ``plan.exposed``.

    Example:
      >>> costs = Costs(lambda size: 0.0 * size + 3.0, copy_out=1.0)
      >>> items = [FusionItem(ready, 5.0, 1) for ready in (2.0, 3.0, 4.0, 5.0)]
      >>> plan = timed(items, [(0, 1), (2,), (3,)], costs)  # 3 to 6, 6 to 9, 9 to 12
      >>> plan.exposed, with_waits(items, plan, costs)  # the second is over at 9, or at 10.5, and then come two copies
      (7.0, 7.5)
    """
    import numpy as np
    sizes = [float(sum(items[index].size for index in bucket)) for bucket in plan.buckets]
    copied = sum(size for size, bucket in zip(sizes, plan.buckets, strict=True)
                 if sum(items[index].members for index in bucket) > 1)
    late = _STARTED_LATE * costs.call(np.array(sizes))
    waits, reading = 0.0, 0.0
    for bucket, end in list(zip(plan.buckets, late + np.array(plan.ends), strict=True))[:-1]:
        waits = max(waits, float(end) - reading - min(items[index].needed for index in bucket))
        reading += sum(items[index].reading for index in bucket)
    waits = max(0.0, waits - costs.copy_in * copied)
    return max(plan.exposed, waits + (costs.copy_in + costs.copy_out) * copied)


def latency_bound(items: Sequence[FusionItem], costs: Costs, limits: Limits) -> list[int]:
    """Items whose call is all latency and that may wait; none if all items are such, or if calls are limited.

    Args:
      items: the items.
      costs: the costs of calls and copies.
      limits: what the user asked for.

    Returns:
      Their indices.

    Example:
      >>> items = [FusionItem(1.0, 9.0, size, free=True) for size in (1, 1000)]
      >>> latency_bound(items, Costs(lambda size: 1.0 + 0.01 * size), Limits())
      [0]
    """
    import numpy as np
    if limits != Limits():
        return []
    took = costs.call(np.array([0, *(item.size for item in items)], float))
    bound = took[1:] <= _LATENCY_BOUND * took[0]
    return [] if bound.all() else [index for index, item in enumerate(items) if item.free and bound[index]]
