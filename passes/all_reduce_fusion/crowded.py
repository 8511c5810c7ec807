"""Buckets for loops whose collectives fill most of an iteration, where every call and every copy adds to the step."""

from collections.abc import Sequence

from hlorewrite.passes.all_reduce_fusion.model import Costs, FusionItem, FusionPlan
from hlorewrite.passes.all_reduce_fusion.times import timed


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
