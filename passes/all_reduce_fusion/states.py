"""States of the dynamic program for bucketing: their storage, and which of them dominate others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

FREE, COPIES, LATE, BUSY, CARRIED = range(5)
"""Rows of the values of states, in seconds: when the next call may start, the time of copies so far, the worst
lateness, the time of calls so far; and how many of the light items are already sent."""
CRITERIA = 3
"""The number of first rows that decide dominance."""

_EXACT = 512
_MOST_STATES = 48
_EPSILON = 1e-12


class Table:
    """The states of all prefixes, grouped by prefix, each with its predecessor.

    Args:
      prefixes: the number of prefixes.
    """

    def __init__(self, prefixes: int) -> None:
        import numpy as np
        self.first = np.zeros(prefixes + 1, int)
        """First row of each prefix; the next entry is one past its last."""
        self.values = np.zeros((5, 64))
        self.links = np.zeros((2, 64), int)
        self.prefix = np.zeros(64, int)
        self.rows = 0

    @staticmethod
    def empty_prefix(prefixes: int) -> Table:
        """A table that contains the state before the first item."""
        import numpy as np
        table = Table(prefixes)
        table.append(0, np.zeros((5, 1)), np.zeros((2, 1), int))
        table.first[1:] = table.rows
        return table

    def append(self, prefix: int, values: Array, links: Array) -> None:
        """Adds the states of the next prefix: values, and (first item of the last bucket, row of the state there)."""
        import numpy as np
        count = values.shape[1]
        # Ends: each round doubles the room.
        while self.rows + count > self.values.shape[1]:
            self.values = np.concatenate([self.values, np.zeros_like(self.values)], axis=1)
            self.links = np.concatenate([self.links, np.zeros_like(self.links)], axis=1)
            self.prefix = np.concatenate([self.prefix, np.zeros_like(self.prefix)])
        into = slice(self.rows, self.rows + count)
        self.values[:, into], self.links[:, into], self.prefix[into] = values, links, prefix
        self.rows += count
        self.first[prefix + 1] = self.rows

    def rows_of(self, prefix: int) -> Array:
        """Rows of the states of a prefix."""
        import numpy as np
        return np.arange(self.first[prefix], self.first[prefix + 1])


def dominating(values: Array) -> Array:
    """The columns of states that no other state dominates; the best few if there are very many.

    Args:
      values: states, a column each.

    Returns:
      Columns. Among equals the one that keeps the stream least busy; one with light items that wait is not compared
      with one without, since it still has to send them.

    Example:
      >>> import numpy as np
      >>> dominating(np.array([[1, 2, 3], [5, 4, 4], [0, 0, 0], [0, 0, 0], [0, 0, 0]], float)).tolist()
      [0, 1]
    """
    import numpy as np
    if not values.shape[1]:
        return np.zeros(0, int)
    order = np.lexsort((values[BUSY], values[LATE], values[COPIES], values[FREE]))
    fronts = []
    for carried in np.unique(values[CARRIED]):
        group = order[values[CARRIED, order] == carried]
        fronts.append(group[_front(values[:CRITERIA, group])])
    return np.concatenate(fronts)


def _front(values: Array) -> Array:
    """The columns, sorted by the first criterion, that no earlier column dominates."""
    import numpy as np
    if values.shape[1] > _EXACT:
        rough = _staircases(values)
        values = values[:, rough]
    else:
        rough = np.arange(values.shape[1])
    below = np.tri(values.shape[1], k=-1, dtype=bool)  # the first criterion sorts the columns
    for criterion in values[1:]:
        below &= criterion <= (criterion + _EPSILON)[:, None]
    return rough[~below.any(axis=1)]


def _staircases(values: Array) -> Array:
    """The best states by each pair of criteria, thinned out; used when there are too many to compare."""
    import numpy as np
    keep: set[int] = set()
    for one, other in ((FREE, COPIES), (FREE, LATE), (COPIES, LATE)):
        order = np.lexsort((values[other], values[one]))
        best = np.minimum.accumulate(values[other, order])
        steps = np.ones(len(order), bool)
        steps[1:] = best[1:] < best[:-1] - _EPSILON
        chosen = order[steps]
        if len(chosen) > _MOST_STATES:
            chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, _MOST_STATES).round().astype(int))]
        keep.update(chosen.tolist())
    return np.array(sorted(keep), int)
