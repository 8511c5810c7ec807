"""Gives equal layers equal buckets: a plan that repeats from layer to layer.

A step with unrolled layers reduces the same gradients for each of them, in the same order. The plan of least exposed
time cuts that order differently in every layer, so the copies into and out of buffers differ in shape from layer to
layer, and XLA:GPU compiles a kernel for each. Buckets that repeat need one for all layers. The run of layers is found
in the ready order: a period p, such that item i and item i + p are of one type, over the longest range. Cuts of one
period are tried, the same in all layers, and one bucket for two, four, ... layers; items before and after the range
are grouped as in the plan without this, stay alone, or travel with the layer next to them.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hlorewrite.passes.all_reduce_fusion.merge import allowed
from hlorewrite.passes.all_reduce_fusion.model import Costs, FusionItem, FusionPlan, Limits
from hlorewrite.passes.all_reduce_fusion.schedule import Bucket
from hlorewrite.passes.all_reduce_fusion.times import IDLE, compute_time, latency_bound, timed, with_waits

_LONGEST_PERIOD = 64
_FEWEST_LAYERS = 3
_MOST_CUTS = 16
_MORE, _OF_COMPUTE = 1.25, 0.005
"""Equal buckets may expose a quarter more, plus half a percent of kernel time."""
_ROOM, _WITH_ROOM = 0.75, 0.025
"""If the stream is free for a quarter of kernel time, they may expose 2.5 % of it: XLA's schedules are closer to the
model when buckets are equal."""
_SLOWED = 0.1
"""Kernels next to a call slow down by this share of its time, half of the 20 % that timelines show."""
_LARGER = 1.25
"""If the stream is idle half of the time and calls are small, the largest may grow by this factor."""


@dataclass(frozen=True)
class LayerRun:
    """Consecutive equal layers in ready order.

    Attributes:
      first: the first item of the first layer.
      period: the number of items of a layer.
      layers: the number of layers.
    """

    first: int
    period: int
    layers: int

    @property
    def end(self) -> int:
        """One past the last item."""
        return self.first + self.period * self.layers


def layer_run(kinds: Sequence[object]) -> LayerRun | None:
    """The longest range of items that repeats, with the shortest period.

    Args:
      kinds: the kind of each item in ready order, equal for items that the same kernels copy.

    Returns:
      The range; None if nothing repeats three times.

    Example:
      >>> layer_run("xabababy")
      LayerRun(first=1, period=2, layers=3)
      >>> layer_run("abcabd") is None
      True
    """
    import numpy as np
    known: dict[object, int] = {}
    numbers = np.array([known.setdefault(kind, len(known)) for kind in kinds], int)
    best: LayerRun | None = None
    for period in range(1, min(_LONGEST_PERIOD, len(kinds) // _FEWEST_LAYERS) + 1):
        breaks = np.flatnonzero(numbers[period:] != numbers[:-period])
        edges = np.concatenate([[-1], breaks, [len(kinds) - period]])
        longest = int(np.argmax(np.diff(edges)))
        equal = int(edges[longest + 1] - edges[longest] - 1)
        run = LayerRun(int(edges[longest]) + 1, period, (equal + period) // period)
        if run.layers >= _FEWEST_LAYERS and (best is None or run.layers * period > best.layers * best.period):
            best = run
    return best


def alike_plan(items: Sequence[FusionItem], kinds: Sequence[object], plan: FusionPlan, costs: Costs,
               limits: Limits | None = None) -> FusionPlan:
    """The best plan whose buckets repeat from layer to layer, if that exposes hardly more time.

    Args:
      items: sorted by ``ready``, each after the items it depends on.
      kinds: the kind of each item, equal for items that the same kernels copy.
      plan: the plan of least exposed time.
      costs: the costs of calls and copies.
      limits: what the user asked for.

    Returns:
      That plan, or ``plan``.

    Example:
      >>> items = [FusionItem(float(ready), 12.0, 8 + ready % 2) for ready in range(6)]
      >>> costs = Costs(lambda size: 1.0 + 0.1 * size, ends=(1.0, 4.0, 8.0, 12.0))
      >>> plan = timed(items, [(0, 1, 2), (3,), (4, 5)], costs)
      >>> alike_plan(items, [item.size for item in items], plan, costs, Limits(bucket_bytes=20)).buckets
      ((0, 1), (2, 3), (4, 5))
    """
    run = layer_run(kinds)
    if run is None or not costs.ends or len(plan.buckets) == len(items):
        return plan  # the stream is too busy to hold calls to kernels, or calls of one member copy nothing
    limits = limits or Limits()
    compute = compute_time(items, costs)
    most = plan.exposed * _MORE + compute * (_WITH_ROOM if plan.busy <= _ROOM * compute else _OF_COMPUTE)
    light = set(latency_bound(items, costs, limits))
    if plan.busy <= IDLE * compute:
        largest = int(_LARGER * max(sum(items[index].size for index in bucket) for bucket in plan.buckets))
        limits = replace(limits, bucket_bytes=min(largest, limits.bucket_bytes or largest))
    candidates = [timed(items, buckets, costs) for buckets in _repeated(items, run, light, plan)
                  if allowed(items, buckets, limits)]
    return min((each for each in candidates if each.exposed <= most),
               key=lambda each: with_waits(items, each, costs) + _SLOWED * each.busy, default=plan)


def _repeated(items: Sequence[FusionItem], run: LayerRun, light: set[int],
              plan: FusionPlan) -> Iterator[list[Bucket]]:
    """Buckets that repeat, in the order in which their calls are ready.

    Items before and after the layers are grouped as in the plan, stay alone, or travel with the layer next to them.
    """
    last = len(items)
    alone = [(place,) for place in range(last)]
    apart = [(run.first, run.end, _outside(each, run, last, light)) for each in (plan.buckets, alone)]
    for (first, end, outside), cuts in itertools.product(dict.fromkeys([*apart, (0, last, ())]),
                                                         _cuts(run, light, plan)):
        groups = [tuple(range(*edges)) for edges in itertools.pairwise((first, *cuts, end))]
        yield sorted([*_riding(groups, light), *outside], key=lambda bucket: (items[bucket[-1]].ready, bucket[-1]))


def _outside(buckets: Sequence[Bucket], run: LayerRun, last: int, light: set[int]) -> tuple[Bucket, ...]:
    """The parts of buckets before the layers, and the parts after them."""
    parts = [[tuple(place for place in bucket if place in side) for bucket in buckets]
             for side in (range(run.first), range(run.end, last))]
    return tuple(bucket for part in parts for bucket in _riding(part, light))


def _riding(groups: Sequence[Bucket], light: set[int]) -> list[Bucket]:
    """Buckets of groups of neighbours: light items wait for the next with several others, or for one of their own."""
    buckets: list[Bucket] = []
    waiting: list[int] = []
    for group in groups:
        waiting += [item for item in group if item in light]
        others = [item for item in group if item not in light]
        if len(others) > 1:
            others, waiting = sorted([*others, *waiting]), []
        buckets += [tuple(others)] if others else []
    return [*buckets, *([tuple(waiting)] if waiting else [])]


def _cuts(run: LayerRun, light: set[int], plan: FusionPlan) -> Iterator[list[int]]:
    """The places where buckets begin: the same in each layer, or one in each second, fourth, ... layer."""
    heavy = [place for place in range(run.period) if run.first + place not in light]
    chosen = {(place - run.first) % run.period for bucket in plan.buckets for place in bucket[:1]
              if run.first <= place < run.end and place not in light}
    every = itertools.chain.from_iterable(itertools.combinations(heavy, count) for count in range(1, len(heavy) + 1))
    for places in {tuple(sorted(chosen)): None, **dict.fromkeys(itertools.islice(every, _MOST_CUTS))}:
        for layers in (1, 2, 4, 8) if len(places) == 1 else (1,):
            yield [run.first + layer * run.period + place for layer in range(0, run.layers, layers)
                   for place in places if layer or place]
