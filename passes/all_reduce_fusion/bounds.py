"""Lower bounds on the time that a state of the dynamic program exposes.

The remaining calls run back to back once the stream is free. If they neither wait for members nor are delayed by
copies, their worst lateness is at least some seconds beyond that time, minimised over all ways to cut the remaining
items. A dynamic program over suffixes finds this minimum. A state that exposes more than a known plan can be dropped,
since exposed time only grows.
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
"""What a state may expose beyond the known plan, so rounding drops no equally good state."""


class Bound:
    """The least exposed time after each prefix.

    Args:
      ready: seconds at which each item is ready.
      later: seconds beyond the time at which the stream is free, for each prefix and the whole.
      most: seconds that a known plan exposes.
    """

    def __init__(self, ready: Array, later: Array, most: float) -> None:
        self.ready, self.later = ready, later
        self.most = most + _RELATIVE * abs(most) + _ABSOLUTE

    def keeps(self, values: Array, prefix: int) -> Array:
        """Finds the states of a prefix that may lead to a plan that exposes no more than the known one.

        Args:
          values: states, a column each.
          prefix: how many items are placed.

        Returns:
          A boolean for each state.

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
    """For each prefix, the least possible worst lateness of calls that run back to back from second zero.

    Args:
      lowest: for each item, the first item it can share a bucket with; ascending.
      total: bytes of each prefix.
      members: collectives of each prefix.
      needed: seconds at which each item is read.
      reading: seconds of the updates of each prefix.
      costs: the costs of calls and copies.

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
