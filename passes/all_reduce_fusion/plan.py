"""Bucketing: decides which collectives share a call, by dynamic programming over the order in which they are ready.

The model: kernels run one after another, calls one after another on a separate stream. A call starts when its last
member is ready and the stream is free. Several members are copied into one buffer before their call and out of it
after, and copies are kernels, unless XLA fuses them with what makes or reads the members: they delay all that follows,
and hide nothing. So with all copies Σ and the last call's end e, a step that takes C without communication takes
max(C + Σ, e + copies out of the last call), and exposed is max(Σ, latest arrival less the time it is needed). An
update that reads one result alone runs while later calls are under way: with arrivals a_k and updates u_k,
the step ends at the largest a_k + Σ_{j >= k} u_j, so call k is needed later by Σ_{j < k} u_j. Gathers are needed one
after another, so copying one out adds to the wait for those before it.

Members are sorted by the time they are ready, and a bucket is an interval of that order. A state is a prefix of the
order with (end of its last call, copies so far, worst lateness). The successors of a state are monotone in all three,
so dropping dominated states loses nothing (Bellman). Nor does dropping states that must expose more (``bounds.py``)
than the best plan of merged neighbours, which a separate search finds. Large tables keep only the best states, and
above 512 members small neighbours are merged first.

Values so small that their call is all latency (biases, scales) would break up that order: they become ready between
large ones that are better off without copies. They wait at no cost for the next call of several members, or for one of
their own at the end. PyTorch's DistributedDataParallel and Horovod use a byte threshold in ready order instead (Li et
al., VLDB 2020; Sergeev and Del Balso, 2018).
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from hlorewrite.passes.all_reduce_fusion.bounds import Bound, later_at_least
from hlorewrite.passes.all_reduce_fusion.merge import fewer_calls
from hlorewrite.passes.all_reduce_fusion.model import MARGINS, Costs, FusionItem, FusionPlan, Limits
from hlorewrite.passes.all_reduce_fusion.states import BUSY, CARRIED, COPIES, FREE, LATE, Table, dominating
from hlorewrite.passes.all_reduce_fusion.times import IDLE, compute_time, latency_bound, soon, timed

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

_FOR_A_MARGIN, _OF_COMPUTE = 1.2, 0.005
"""A margin may cost a fifth more exposed time plus half a percent of kernel time."""
_SMALL, _OF_IDLE = 16 << 20, 0.025
"""If the stream is idle half of the time, calls of several members are kept small, at a cost of up to 2.5 % of compute:
a long call exposes more when the compiler starts it late. Members that are ready together start together."""

_FEW, _MERGED = 48, 4
"""A larger number of items is first planned with neighbours merged to a quarter as many."""


def best_plan(items: Sequence[FusionItem], costs: Costs, limits: Limits | None = None) -> FusionPlan:
    """The plan of least exposed time; among equals, the one that ends first.

    Args:
      items: sorted by ``ready``, each after the items it depends on.
      costs: the costs of calls and copies.
      limits: what the user asked for.

    Returns:
      The plan. With ``max_buckets`` so small that dependences do not allow it, the one with the fewest buckets.

    Example:
      >>> items = [FusionItem(ready, 10.0, 1) for ready in (1.0, 2.0, 9.0)]
      >>> best_plan(items, Costs(lambda size: 1.0 + size)).buckets  # a call costs one, a byte one
      ((0, 1), (2,))
      >>> best_plan(items, Costs(lambda size: 1.0 + size, copy_in=1.0)).buckets  # copies are not worth it
      ((0,), (1,), (2,))
    """
    limits = limits or Limits()
    if not items:
        return FusionPlan((), 0.0, 0.0)
    light = latency_bound(items, costs, limits)
    waiting = set(light)
    rest = [index for index in range(len(items)) if index not in waiting]
    heavy = [replace(items[index], after=bisect.bisect_right(rest, items[index].after) - 1) for index in rest]
    spans = spans_of(heavy, limits.bucket_bytes)
    search = _Search([_merged(heavy[first:after], spans) for first, after in spans],
                     [items[index] for index in light], costs, limits)
    intervals = search.run()
    if limits.max_buckets is not None and len(intervals) > limits.max_buckets:
        intervals = search.bounded(limits.max_buckets)
    buckets = [sorted([*(rest[i] for span in spans[first:after] for i in range(*span)), *light[low:high]])
               for first, after, low, high in intervals]
    return timed(items, [tuple(bucket) for bucket in buckets], costs)


def held_plan(items: Sequence[FusionItem], costs: Costs, limits: Limits | None = None) -> tuple[FusionPlan, float]:
    """The plan of least exposed time, with the widest margins for its calls that cost little.

    Args:
      items: sorted by ``ready``, each after the items it depends on.
      costs: the costs of calls and copies.
      limits: what the user asked for.

    Returns:
      The plan, and the margin with which its calls are held.

    Example:
      >>> costs = Costs(lambda size: 1.0 + 0.0 * size, ends=(1.0, 2.1, 4.0, 9.0))
      >>> held_plan([FusionItem(1.0, 9.0, 1), FusionItem(8.0, 9.0, 1)], costs)[1]
      0.5
    """
    if not costs.ends:
        return best_plan(items, costs, limits), costs.margin
    plans = [(best_plan(items, replace(costs, margin=margin), limits), margin) for margin in MARGINS]
    compute = compute_time(items, costs)
    most = plans[-1][0].exposed * _FOR_A_MARGIN + compute * _OF_COMPUTE
    best = next((plan, margin) for plan, margin in plans if plan.exposed <= most)
    if limits in (None, Limits()) and best[0].busy <= IDLE * compute:
        small = Limits(bucket_bytes=_SMALL)
        for margin in MARGINS:
            held = replace(costs, margin=margin)
            plan = fewer_calls(items, best_plan(items, held, small), held, limits, soon(costs))
            if plan.exposed <= _OF_IDLE * compute:
                return plan, margin
    return fewer_calls(items, best[0], replace(costs, margin=best[1]), limits), best[1]


def _merged(items: Sequence[FusionItem], spans: Sequence[tuple[int, int]]) -> FusionItem:
    """Merges neighbours into one item: ready with the last, needed with the first."""
    after = max(item.after for item in items)
    if after >= 0:
        after = bisect.bisect_right(spans, (after, spans[-1][1] + 1)) - 1
    return FusionItem(items[-1].ready, min(item.needed for item in items), sum(item.size for item in items), after,
                      members=sum(item.members for item in items), reading=sum(item.reading for item in items))


ChosenInterval = tuple[int, int, int, int]
"""A bucket: the range of its heavy items, and of its light ones."""


class _Search:
    """The dynamic program over heavy items; light ones ride along."""

    def __init__(self, items: Sequence[FusionItem], light: Sequence[FusionItem], costs: Costs, limits: Limits) -> None:
        import numpy as np
        self.items, self.light, self.costs, self.limits = items, light, costs, limits
        self.ready = np.array([item.ready for item in items])
        self.needed = np.array([item.needed for item in items])
        self.total = np.concatenate([[0], np.cumsum([item.size for item in items])]).astype(float)
        self.members = np.concatenate([[0], np.cumsum([item.members for item in items])])
        self.reading = np.concatenate([[0], np.cumsum([item.reading for item in items])])
        self.light_total = np.concatenate([[0], np.cumsum([item.size for item in light])]).astype(float)
        self.light_ready = np.array([item.ready for item in light])
        self.delay = costs.copy_in / max(costs.copy_in + costs.copy_out, 1e-30)
        """The share of copies that delay later kernels."""
        self.seen = [0, *np.searchsorted(self.light_ready, self.ready + soon(costs), side="right").tolist()]
        """For each prefix, how many light items a bucket that ends there takes along, if any."""
        self.seen[-1] = len(light)
        self.lowest = self._lowest(limits)

    def _lowest(self, limits: Limits) -> list[int]:
        """For each item, the first item it can share a bucket with."""
        lows, low = [], 0
        for end, item in enumerate(self.items):
            low = max(low, item.after + 1)
            if limits.bucket_bytes is not None:
                # Ends: ``low`` rises to ``end``.
                while low < end and self.total[end + 1] - self.total[low] > limits.bucket_bytes:
                    low += 1
            lows.append(low)
        return lows

    def run(self) -> list[ChosenInterval]:
        """The best buckets without a bound on their number."""
        return self._found()[1]

    def _found(self) -> tuple[float, list[ChosenInterval]]:
        """The time that the best buckets expose, and the buckets."""
        known = self._of_merged()
        bound = self._bound(known[0]) if known else None
        count = len(self.items)
        table = Table.empty_prefix(count + 1)
        for end in range(count):
            self._extend(table, table, end, bound)
        if known and not len(table.rows_of(count)):
            return known  # a large table lost the states that lead to an equally good plan
        return self._best(table)[0][0], self._traced([table] * (count + 1), count)

    def _of_merged(self) -> tuple[float, list[ChosenInterval]] | None:
        """The best buckets after merging neighbours; None for few items, or if dependences keep them apart."""
        count = len(self.items)
        spans = spans_of(self.items, self.limits.bucket_bytes, count // _MERGED) if count > _FEW else []
        if not spans or len(spans) > count // 2:
            return None
        merged = _Search([_merged(self.items[first:after], spans) for first, after in spans], self.light, self.costs,
                         self.limits)
        exposed, intervals = merged._found()
        return exposed, [(spans[first][0], spans[after - 1][1], low, high) if after > first else
                         (count, count, low, high) for first, after, low, high in intervals]

    def _bound(self, most: float) -> Bound:
        """The bound that drops states that expose more than a known plan."""
        import numpy as np
        later = np.full(len(self.items) + 1, -np.inf) if self.light else later_at_least(
            self.lowest, self.total, self.members, self.needed, self.reading, self.costs)
        return Bound(self.ready, later, most)

    def bounded(self, most: int) -> list[ChosenInterval]:
        """The best buckets under a limit on their number: one table for each number of buckets, no light items."""
        count = len(self.items)
        tables = [Table.empty_prefix(count + 1)]
        for _ in range(most):
            table = Table(count + 1)
            for end in range(count):
                self._extend(tables[-1], table, end)
            tables.append(table)
        layers = [layer for layer, table in enumerate(tables) if len(table.rows_of(count))]
        if not layers:
            return self._fewest()
        return self._traced(tables, min(layers, key=lambda layer: self._best(tables[layer])[0]))

    # ---- one step

    def _extend(self, source: Table, into: Table, end: int, bound: Bound | None = None) -> None:
        """The states of the prefix that ends with an item: each possible last bucket after each state before it."""
        import numpy as np
        rows = np.arange(source.first[self.lowest[end]], source.first[end + 1])
        starts = source.prefix[rows]
        members = self.members[end + 1] - self.members[starts]
        riders = self.seen[end + 1] - source.values[CARRIED, rows]
        alone = members == 1
        parts = [self._after(source, rows[alone], end, riders=False),
                 self._after(source, rows[~alone | (riders > 0)], end, riders=True)]
        values = np.concatenate([part[0] for part in parts], axis=1)
        links = np.concatenate([part[1] for part in parts], axis=1)
        if bound is not None:
            kept = bound.keeps(values, end + 1)
            values, links = values[:, kept], links[:, kept]
        waiting = values.copy()
        waiting[CARRIED] = values[CARRIED] < self.seen[end + 1]
        chosen = dominating(waiting)
        into.append(end + 1, values[:, chosen], links[:, chosen])

    def _after(self, source: Table, rows: Array, end: int, *, riders: bool) -> tuple[Array, Array]:
        """States and links after buckets that end with an item, with or without the light items that wait."""
        import numpy as np
        starts = source.prefix[rows]
        low = self.lowest[end]
        ready = np.full(len(rows), self.ready[end])
        size = self.total[end + 1] - self.total[starts]
        members = self.members[end + 1] - self.members[starts]
        carried = source.values[CARRIED, rows]
        if riders:
            upto = self.seen[end + 1]
            taken = carried < upto
            size = size + self.light_total[upto] - self.light_total[carried.astype(int)]
            members = members + (upto - carried) * taken
            if upto:
                ready = np.where(taken, np.maximum(ready, self.light_ready[upto - 1]), ready)
            carried = np.maximum(carried, upto)
        needed = np.minimum.accumulate(self.needed[low:end + 1][::-1])[::-1][starts - low]
        values = self._sent(source.values[:, rows], ready, size, members, needed + self.reading[starts])
        values[CARRIED] = carried
        return values, np.stack([starts, rows])

    def _sent(self, values: Array, ready: Array, size: Array, members: Array, needed: Array | float) -> Array:
        """States after one more call each; leaves ``CARRIED`` as it was."""
        import numpy as np
        took = self.costs.call(size)
        copied = size * (members > 1)
        copies = values[COPIES] + (self.costs.copy_in + self.costs.copy_out) * copied
        end = np.maximum(values[FREE], ready + self.delay * copies) + took
        late = np.maximum(values[LATE] + self.costs.copy_behind_wait * copied,
                          end + self.costs.copy_out * copied - needed)
        free = self.costs.over(end, took, self.delay * copies)
        return np.stack([free, copies, late, values[BUSY] + took, values[CARRIED]])

    # ---- the end

    def _best(self, table: Table) -> tuple[tuple[float, ...], int]:
        """The best complete state, light items that wait sent by a separate call: (what is small, row)."""
        import numpy as np
        rows = table.rows_of(len(self.items))
        values = table.values[:, rows]
        count = len(self.light_ready)
        waits = values[CARRIED] < count
        if waits.any():
            size = self.light_total[count] - self.light_total[values[CARRIED].astype(int)]
            sent = self._sent(values, np.full(len(rows), self.light_ready[-1]), size, count - values[CARRIED],
                              float(self.needed.max() + self.reading[-1]))
            values = np.where(waits, sent, values)
        exposed = np.maximum(np.maximum(values[COPIES], values[LATE]), 0.0)
        exposed = np.minimum(exposed, values[BUSY] + values[COPIES])  # as in ``times.timed``
        best = np.lexsort((values[BUSY], values[COPIES], values[FREE], exposed))[0]
        return (float(exposed[best]), float(values[FREE, best]), float(values[BUSY, best])), int(rows[best])

    def _traced(self, tables: Sequence[Table], layer: int) -> list[ChosenInterval]:
        """The buckets that lead to the best state of a layer."""
        row = self._best(tables[layer])[1]
        place, intervals = len(self.items), []
        carried = int(tables[layer].values[CARRIED, row])
        if carried < len(self.light_ready):
            intervals.append((place, place, carried, len(self.light_ready)))
        # Ends: each bucket ends where the last one starts.
        while place:
            start, before = (int(link) for link in tables[layer].links[:, row])
            layer -= 1
            carried, upto = int(tables[layer].values[CARRIED, before]), carried
            intervals.append((start, place, carried, upto))
            place, row = start, before
        return intervals[::-1]

    def _fewest(self) -> list[ChosenInterval]:
        """The fewest buckets that dependences and sizes allow, filled from the end."""
        intervals, place = [], len(self.items)
        # Ends: each bucket ends where the last one starts.
        while place:
            intervals.append((self.lowest[place - 1], place, 0, 0))
            place = self.lowest[place - 1]
        return intervals[::-1]


# ---- the items of bucketing: single ones, or runs of small neighbours when there are very many


MOST_ITEMS = 512


class Sized(Protocol):
    """An item with a size; it may depend on an earlier item."""

    @property
    def size(self) -> int:
        """Bytes."""
        ...

    @property
    def after(self) -> int:
        """The last earlier item it depends on; -1 for none."""
        ...


def spans_of(items: Sequence[Sized], bucket_bytes: int | None, most_items: int = MOST_ITEMS) -> list[tuple[int, int]]:
    """Ranges of neighbours that are placed as one item.

    Args:
      items: the items, in the order they are ready.
      bucket_bytes: most bytes of a bucket; None for no limit.
      most_items: how many items are placed one by one.

    Returns:
      (first, last + 1) of each range, none of which depends on itself.

    Example:
      >>> from hlorewrite.passes.all_reduce_fusion.model import FusionItem
      >>> spans_of([FusionItem(0.0, 1.0, 4), FusionItem(0.5, 1.0, 4)], None)
      [(0, 1), (1, 2)]
    """
    if len(items) <= most_items:
        return [(index, index + 1) for index in range(len(items))]
    share = 2 * sum(item.size for item in items) / most_items
    most = min(share, bucket_bytes or share)
    longest = -(-2 * len(items) // most_items)
    spans, first, size = [], 0, 0
    for index, item in enumerate(items):
        if index > first and (size + item.size > most or item.after >= first or index - first >= longest):
            spans.append((first, index))
            first, size = index, 0
        size += item.size
    return [*spans, (first, len(items))]
