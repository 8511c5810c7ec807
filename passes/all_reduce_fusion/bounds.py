"""Lower bounds on the time that a state of the bucketing program exposes.

The calls to come follow each other from when the stream is free. Without waits for their members and without copies
that put them off, the worst lateness among them is some seconds beyond that time, least over all ways to cut the items
that are left: a program over suffixes finds it. A state that exposes more than a plan that is known can be dropped, for
exposed time only grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlorewrite.passes.all_reduce_fusion.states import COPIES, FREE, LATE

if TYPE_CHECKING:
    import numpy as np

    from hlorewrite.passes.all_reduce_fusion.model import Costs

    Array = np.ndarray

_RELATIVE, _ABSOLUTE = 1e-6, 1e-9
"""What a state may expose beyond the plan that is known: rounding must not drop what is as good."""


class Bound:
    """What is exposed at least after each prefix.

    Args:
      ready: seconds at which each item is ready.
      later: seconds beyond the time at which the stream is free, for each prefix and the whole.
      most: seconds that a plan which is known exposes.
    """

    def __init__(self, ready: Array, later: Array, most: float) -> None:
        self.ready, self.later = ready, later
        self.most = most + _RELATIVE * abs(most) + _ABSOLUTE

    def keeps(self, values: Array, prefix: int) -> Array:
        """Finds the states of a prefix that may lead to a plan that exposes at most what the known one does.

        Args:
          values: states, a column each.
          prefix: how many items are placed.

        Returns:
          A truth value for each.

        Example:
          >>> import numpy as np
          >>> bound = Bound(np.array([1.0, 2.0]), np.array([0.0, 3.0, -np.inf]), 6.0)
          >>> bound.keeps(np.array([[1.0, 4.0], [0.0, 0.0], [5.0, 5.0]]), 1)  # 2 + 3 and 4 + 3 seconds
          array([ True, False])
        """
        import numpy as np
        free = values[FREE]
        if prefix < len(self.ready):
            free = np.maximum(free, self.ready[prefix])
        return np.maximum(np.maximum(values[COPIES], values[LATE]), free + self.later[prefix]) <= self.most


def later_at_least(lowest: Sequence[int], total: Array, members: Array, needed: Array, reading: Array,
                   costs: Costs) -> Array:
    """The least of the worst lateness of calls that follow each other from second zero, for each prefix.

    Args:
      lowest: for each item, the first item it can share a bucket with; ascending.
      total: bytes of each prefix.
      members: collectives of each prefix.
      needed: seconds at which each item is read.
      reading: seconds of the updates of each prefix.
      costs: what calls and copies cost.

    Returns:
      Seconds for each prefix; minus infinity for the whole.

    Example:
      >>> import numpy as np
      >>> from hlorewrite.passes.all_reduce_fusion.model import Costs
      >>> both = np.array([0, 1, 2])
      >>> later_at_least([0, 0], both, both, np.array([1.0, 9.0]), both * 0, Costs(lambda size: 2.0 + size))
      array([ 2., -6., -inf])
    """
    import numpy as np
    count = len(lowest)
    ends = np.searchsorted(lowest, np.arange(count), side="right")
    later = np.full(count + 1, -np.inf)
    for start in range(count - 1, -1, -1):
        after = slice(start + 1, ends[start] + 1)
        size = total[after] - total[start]
        took = costs.call(size)
        copied = size * (members[after] - members[start] > 1)
        late = costs.copy_out * copied - np.minimum.accumulate(needed[start:ends[start]]) - reading[start]
        later[start] = (took + np.maximum(late, later[after])).min()
    return later
