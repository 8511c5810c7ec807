"""Bucketing: which neighbours in ready order travel in one call, by dynamic programming.

The model: calls run one after another on one stream. A bucket starts when its last member is ready and the stream is
free, and takes ``seconds(bytes)``. Exposed time is by how much any member comes later than it is needed. Members are
sorted by the time they are ready, and a bucket is an interval of that order: with equal needs an exchange argument
shows that some optimal plan has this form. Two passes of one dynamic programme give the plan: the first finds the least
exposed time; the second, among the plans that reach it, the one that ends first if compute were as fast as one call for
everything. Without it, calls that have time to spare would be merged into few that start late, and a kernel that the
compiler moves, or a faster machine, would expose them. A state is a prefix of the order with (end of its last call,
exposed time or end under pressure); both can only grow with what they were, so dominated states are dropped and nothing
is lost (Bellman); only the second pass keeps at most 24 of them for a prefix, and above 512 members small neighbours
are merged first. PyTorch's DistributedDataParallel and Horovod use a byte threshold in ready order instead (Li et al.,
VLDB 2020; Sergeev and Del Balso, 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

_SLACK = 1e-9
_MOST_STATES = 24
_MOST_ITEMS = 512
_SHARE_OF_STREAM = 0.4
_MORE_BUSY = 1.1
_MORE_EXPOSED = 1.02
_SMALLEST_CAP = 20


@dataclass(frozen=True)
class Item:
    """One collective to place.

    Attributes:
      ready: seconds; its operands have been computed.
      needed: seconds; its result is read.
      size: bytes of its payload.
      after: the last earlier item it depends on, as an index; -1 for none.
    """

    ready: float
    needed: float
    size: int
    after: int = -1


@dataclass(frozen=True)
class Limits:
    """What the user asked for.

    Attributes:
      bucket_bytes: most bytes of a bucket with several members; None for no limit.
      max_buckets: most buckets; None for no limit. Dependences may force more.
    """

    bucket_bytes: int | None = None
    max_buckets: int | None = None


@dataclass(frozen=True)
class Plan:
    """Buckets as index ranges of the items.

    Attributes:
      buckets: (first, last + 1) of each, in order.
      exposed: seconds by which results come too late.
      pressed: seconds until the last call ends when compute takes no longer than one call for everything.
      busy: seconds the calls take together.
    """

    buckets: tuple[tuple[int, int], ...]
    exposed: float
    pressed: float
    busy: float


class _Table:
    """States of all prefixes, those of one prefix next to each other.

    A state says when its last call ends, the quantity to make small (exposed or busy time), the exposed time so far,
    and where it came from: the start of its last bucket and the row of the state there.
    """

    def __init__(self, prefixes: int) -> None:
        import numpy as np
        self.first = np.zeros(prefixes + 1, int)
        """First row of each prefix; the next entry is one past its last."""
        self.values = np.zeros((3, 64))
        self.links = np.zeros((3, 64), int)
        self.rows = 0

    def append(self, prefix: int, values: Array, links: Array) -> None:
        """Adds the states of the next prefix: ``values`` (end, quantity, exposed), ``links`` (start, row)."""
        import numpy as np
        count = values.shape[1]
        while self.rows + count > self.values.shape[1]:
            self.values = np.concatenate([self.values, np.zeros_like(self.values)], axis=1)
            self.links = np.concatenate([self.links, np.zeros_like(self.links)], axis=1)
        into = slice(self.rows, self.rows + count)
        self.values[:, into] = values
        self.links[0, into], self.links[1, into], self.links[2, into] = prefix, links[0], links[1]
        self.rows += count
        self.first[prefix + 1:] = self.rows

    def best(self, prefix: int) -> int | None:
        """The row of a prefix with the smallest quantity, the earliest end among equals; None when it has none."""
        import numpy as np
        low, high = int(self.first[prefix]), int(self.first[prefix + 1])
        if low == high:
            return None
        return low + int(np.lexsort((self.values[0, low:high], self.values[1, low:high]))[0])


def best_plan(items: Sequence[Item], seconds: Callable[[Array, Array], Array], limits: Limits | None = None) -> Plan:
    """The plan of least exposed time, and among those the one that ends first under pressure.

    Args:
      items: sorted by ``ready``, each after the items it depends on.
      seconds: seconds of calls, from their bytes and their numbers of members, arrays of one shape.
      limits: what the user asked for.

    Returns:
      The plan. With ``max_buckets`` so small that dependences do not allow it, the one with the fewest buckets.

    Example:
      >>> items = [Item(ready, 10.0, 1) for ready in (1.0, 2.0, 9.0)]
      >>> best_plan(items, lambda size, members: 1.0 + size).buckets  # a call costs one, a byte one
      ((0, 2), (2, 3))
    """
    limits = limits or Limits()
    if not items:
        return Plan((), 0.0, 0.0, 0.0)
    spans = _spans(items, limits)
    merged = [_merged(items[first:after], spans) for first, after in spans]
    plan = _relaxed(merged, seconds, limits, _within(merged, seconds, limits))
    buckets = tuple((spans[first][0], spans[after - 1][1]) for first, after in plan.buckets)
    return replace(plan, buckets=buckets)


def _within(items: Sequence[Item], seconds: Callable[[Array, Array], Array], limits: Limits) -> Plan:
    """The best plan within limits."""
    search = _Search(items, seconds, limits)
    plan = search.run()
    if limits.max_buckets is not None and len(plan.buckets) > limits.max_buckets:
        return search.bounded(limits.max_buckets)
    return plan


def _relaxed(items: Sequence[Item], seconds: Callable[[Array, Array], Array], limits: Limits, best: Plan) -> Plan:
    """A plan of smaller buckets that exposes no more, when the stream has time to spare.

    The order in which a compiler runs kernels is not known here: XLA may put off gradients of weights to the end and
    run them last to first, and then it is the largest bucket that is exposed. So buckets are as small as they can be
    while the stream is busy at most two fifths of the time until the last member is ready.
    """
    import numpy as np
    total = sum(item.size for item in items)
    spare = max(_SHARE_OF_STREAM * items[-1].ready, _MORE_BUSY * best.busy)
    for power in range(_SMALLEST_CAP, 63):
        cap = 1 << power
        if cap >= total or cap >= (limits.bucket_bytes or total):
            return best
        if total / cap * float(seconds(np.array([float(cap)]), np.array([1]))[0]) > spare:
            continue  # full buckets of this size would already take longer
        plan = _within(items, seconds, replace(limits, bucket_bytes=cap))
        most = limits.max_buckets or len(plan.buckets)
        if plan.exposed <= best.exposed * _MORE_EXPOSED + _SLACK and plan.busy <= spare and len(plan.buckets) <= most:
            return plan
    return best


def _spans(items: Sequence[Item], limits: Limits) -> list[tuple[int, int]]:
    """What the programme works on: single items, or runs of small neighbours when there are very many."""
    if len(items) <= _MOST_ITEMS:
        return [(index, index + 1) for index in range(len(items))]
    share = 2 * sum(item.size for item in items) / _MOST_ITEMS
    most = min(share, limits.bucket_bytes or share)
    longest = -(-2 * len(items) // _MOST_ITEMS)
    spans, first, size = [], 0, 0
    for index, item in enumerate(items):
        if index > first and (size + item.size > most or item.after >= first or index - first >= longest):
            spans.append((first, index))
            first, size = index, 0
        size += item.size
    return [*spans, (first, len(items))]


def _merged(items: Sequence[Item], spans: Sequence[tuple[int, int]]) -> Item:
    """Neighbours as one item: ready with the last, needed with the first."""
    import bisect
    after = max(item.after for item in items)
    if after >= 0:
        after = bisect.bisect_right(spans, (after, spans[-1][1] + 1)) - 1
    return Item(items[-1].ready, min(item.needed for item in items), sum(item.size for item in items), after)


class _Search:
    def __init__(self, items: Sequence[Item], seconds: Callable[[Array, Array], Array], limits: Limits) -> None:
        import numpy as np
        self.items = items
        self.ready = np.array([item.ready for item in items])
        self.needed = np.array([item.needed for item in items])
        self.total = np.concatenate([[0], np.cumsum([item.size for item in items])]).astype(float)
        self.seconds = seconds
        self.pressed = self._pressed()
        self.lowest = self._lowest(limits)
        self.rows = [self._row(end) for end in range(len(items))]

    def _lowest(self, limits: Limits) -> list[int]:
        """For each item, the first item it can share a bucket with."""
        found, low = [], 0
        for end, item in enumerate(self.items):
            low = max(low, item.after + 1)
            first = low
            if limits.bucket_bytes is not None:
                while first < end and self.total[end + 1] - self.total[first] > limits.bucket_bytes:
                    first += 1
                low = first
            found.append(first)
        return found

    def _row(self, end: int) -> tuple[Array, Array]:
        """For buckets that end with an item, by their first item: (seconds, earliest need)."""
        import numpy as np
        low = self.lowest[end]
        members = np.arange(end + 1 - low, 0, -1)
        cost = self.seconds(self.total[end + 1] - self.total[low:end + 1], members)
        needed = np.minimum.accumulate(self.needed[low:end + 1][::-1])[::-1]
        return cost, needed

    def _pressed(self) -> Array:
        """When members are ready if compute took no longer than one call for everything."""
        import numpy as np
        count, last = len(self.items), float(self.ready[-1])
        least = float(self.seconds(self.total[-1:], np.array([count]))[0])
        return self.ready * min(1.0, least / last) if last > 0 else self.ready

    def run(self) -> Plan:
        """Both passes without a bound on the number of buckets."""
        count = len(self.items)
        table = self._table(None)
        best = table.best(count)
        exposed = float(table.values[1, best])
        table = self._table(exposed * (1 + _SLACK) + _SLACK)
        return self._plan([table] * (count + 1), count, table.best(count))

    def bounded(self, most: int) -> Plan:
        """The same with at most so many buckets: one table for each number of buckets."""
        count, exposed = len(self.items), None
        ends: list[tuple[float, int]] = []
        tables: list[_Table] = []
        for _ in range(2):
            tables = self._layers(most, exposed)
            ends = [(float(table.values[1, best]), k) for k, table in enumerate(tables)
                    if (best := table.best(count)) is not None]
            if not ends:
                return self._fewest()
            if exposed is None:
                exposed = min(ends)[0] * (1 + _SLACK) + _SLACK
        layer = min(ends)[1]
        return self._plan(tables, layer, tables[layer].best(count))

    # ---- one pass

    def _table(self, exposed: float | None) -> _Table:
        """States of every prefix; the quantity is exposed time, or the end under pressure when that is bounded."""
        table = _empty_prefix(len(self.items) + 1)
        for end in range(len(self.items)):
            self._extend(table, table, end, exposed)
        return table

    def _layers(self, most: int, exposed: float | None) -> list[_Table]:
        """Tables for zero buckets, one, and so on."""
        tables = [_empty_prefix(len(self.items) + 1)]
        for _ in range(most):
            table = _Table(len(self.items) + 1)
            for end in range(len(self.items)):
                self._extend(tables[-1], table, end, exposed)
            tables.append(table)
        return tables

    def _extend(self, source: _Table, into: _Table, end: int, exposed: float | None) -> None:
        """The states of the prefix that ends with an item: each possible last bucket after each state before it."""
        import numpy as np
        low = self.lowest[end]
        cost, needed = self.rows[end]
        rows = np.arange(source.first[low], source.first[end + 1])
        ends, quantity, late = source.values[:, rows]
        starts = source.links[0, rows]
        took = cost[starts - low]
        finish = np.maximum(ends, self.ready[end]) + took
        late = np.maximum(late, finish - needed[starts - low])
        if exposed is None:
            values = np.stack([finish, late, late])
        else:
            fits = late <= exposed
            values = np.stack([finish, np.maximum(quantity, self.pressed[end]) + took, late])[:, fits]
            starts, rows = starts[fits], rows[fits]
        chosen = _front(values[0], values[1], None if exposed is None else _MOST_STATES)
        into.append(end + 1, values[:, chosen], np.stack([starts[chosen], rows[chosen]]))

    def _plan(self, tables: Sequence[_Table], layer: int, row: int | None) -> Plan:
        if row is None:
            raise ValueError("a bucket ends where none can")
        table, place, buckets = tables[layer], len(self.items), []
        while place:
            start = int(table.links[1, row])
            row = int(table.links[2, row])
            buckets.append((start, place))
            place, layer = start, layer - 1
            table = tables[layer]
        return self._timed(tuple(reversed(buckets)))

    def _fewest(self) -> Plan:
        """As few buckets as dependences and sizes allow, filled from the end."""
        buckets, place = [], len(self.items)
        while place:
            buckets.append((self.lowest[place - 1], place))
            place = self.lowest[place - 1]
        return self._timed(tuple(reversed(buckets)))

    def _timed(self, buckets: tuple[tuple[int, int], ...]) -> Plan:
        """A plan with its times."""
        end = pressed = busy = exposed = 0.0
        for first, after in buckets:
            took = float(self.rows[after - 1][0][first - self.lowest[after - 1]])
            end = max(end, float(self.ready[after - 1])) + took
            pressed = max(pressed, float(self.pressed[after - 1])) + took
            busy += took
            exposed = max(exposed, end - float(self.needed[first:after].min()))
        return Plan(buckets, exposed, pressed, busy)


def _empty_prefix(prefixes: int) -> _Table:
    """A table that holds the state before the first item."""
    import numpy as np
    table = _Table(prefixes)
    table.append(0, np.zeros((3, 1)), np.zeros((2, 1), int))
    return table


def _front(end: Array, quantity: Array, most: int | None) -> Array:
    """Indices of the states no other is better than in both quantities; the best few when there are more than most.

    The state that ends first is always kept, so that whatever can still be reached in time stays reachable.
    """
    import numpy as np
    order = np.lexsort((quantity, end))  # stable: among equals the longest bucket
    best = np.minimum.accumulate(quantity[order])
    keep = np.ones(len(order), bool)
    keep[1:] = best[1:] < best[:-1] - 1e-12
    chosen = order[keep]
    if most is not None and len(chosen) > most:
        chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, most).round().astype(int))]
    return chosen
