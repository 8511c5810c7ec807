"""Merges calls if that exposes hardly more time.

Among states that are equally late so far, the dynamic program keeps those that free the stream first, which leaves
calls apart that would fit into one. Fewer calls leave XLA's scheduler less to order.
"""

import math
from collections.abc import Sequence

from hlorewrite.passes.all_reduce_fusion.model import Costs, FusionItem, FusionPlan, Limits
from hlorewrite.passes.all_reduce_fusion.schedule import Bucket
from hlorewrite.passes.all_reduce_fusion.times import compute_time, timed

_MOST_CALLS = 64
_OF_COMPUTE = 0.001
"""The additional exposed time allowed, as a share of kernel time."""


def allowed(items: Sequence[FusionItem], buckets: Sequence[Bucket], limits: Limits) -> bool:
    """Whether no member waits for another of its bucket, and the user's limits hold.

    Args:
      items: sorted by ``ready``, each after the items it depends on.
      buckets: the buckets of items, each in their order.
      limits: what the user asked for.

    Returns:
      Whether these buckets may become calls.

    Example:
      >>> items = [FusionItem(0.0, 9.0, 1), FusionItem(1.0, 9.0, 1, after=0)]
      >>> allowed(items, [(0,), (1,)], Limits()), allowed(items, [(0, 1)], Limits())
      (True, False)
    """
    if limits.max_buckets is not None and len(buckets) > limits.max_buckets:
        return False
    for bucket in buckets:
        if any(items[index].after >= bucket[0] for index in bucket):
            return False
        size = sum(items[index].size for index in bucket)
        if limits.bucket_bytes is not None and len(bucket) > 1 and size > limits.bucket_bytes:
            return False
    return True


def fewer_calls(items: Sequence[FusionItem], plan: FusionPlan, costs: Costs, limits: Limits | None = None,
                within: float = math.inf) -> FusionPlan:
    """The plan with neighbouring calls merged, from the first to the last, if that exposes hardly more time.

    Args:
      items: sorted by ``ready``, each after the items it depends on.
      plan: the plan of least exposed time.
      costs: the costs of calls and copies.
      limits: what the user asked for.
      within: calls are merged if their members become ready within this many seconds.

    Returns:
      The merged plan; the given one if nothing can be merged, or if there are very many calls.

    Example:
      >>> items = [FusionItem(0.0, 9.0, 1), FusionItem(1.0, 9.0, 1), FusionItem(8.0, 9.0, 1)]
      >>> costs = Costs(lambda size: 1.0 + 0.1 * size)
      >>> fewer_calls(items, timed(items, [(0,), (1,), (2,)], costs), costs).buckets
      ((0, 1), (2,))
    """
    limits = limits or Limits()
    if len(plan.buckets) > _MOST_CALLS:
        return plan
    most = plan.exposed + _OF_COMPUTE * compute_time(items, costs)
    place = 0
    # Ends: each round merges two calls, or the place rises.
    while place + 1 < len(plan.buckets):
        together = tuple(sorted(plan.buckets[place] + plan.buckets[place + 1]))
        buckets = [*plan.buckets[:place], together, *plan.buckets[place + 2:]]
        close = items[together[-1]].ready - items[together[0]].ready <= within
        merged = timed(items, buckets, costs) if close and allowed(items, buckets, limits) else None
        if merged is not None and merged.exposed <= most and merged.busy <= plan.busy:
            plan = merged
        else:
            place += 1
    return plan
