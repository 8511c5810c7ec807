"""How often each branch is taken, where the counter of the loop around decides.

``cond(i % 4 == 3, ...)`` in a loop of known trip count takes each branch a known number of times. The predicate is
evaluated for every iteration, as index expressions are for every device.
"""

from fractions import Fraction

import numpy as np

from hlorewrite.analysis.counters import loop_counters
from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.ir.binding import ir
from hlorewrite.ir.regions import Loop


def taken_shares(op: ir.Operation) -> tuple[Fraction, ...] | None:
    """The share of the executions of a branching op in which it takes each branch.

    Args:
      op: a ``stablehlo.case`` or ``stablehlo.if``.

    Returns:
      A share for each region, 1 in total; None unless its predicate is computed from constants, or from constants and
      the counters of the loop of known trip count whose body it stands in.
    """
    counters, trips = _counters(op)
    table = PerDeviceConstants.of_iterations(counters).table(op.operands[0])
    if table is None:
        return None
    taken = np.broadcast_to(table[0], (trips,)).astype(np.int64)
    last = len(op.regions) - 1
    if op.name == "stablehlo.if":
        chosen = np.where(taken != 0, 0, 1)
    else:  # an index out of range means the last branch
        chosen = np.where((taken >= 0) & (taken <= last), taken, last)
    counts = np.bincount(chosen, minlength=last + 1)
    return tuple(Fraction(int(count), trips) for count in counts)


def _counters(op: ir.Operation) -> tuple[dict[ir.Value, np.ndarray], int]:
    """What the counters of the loop around hold in each iteration, and how many there are; one iteration elsewhere."""
    around = op.parent
    if around is None or around.operation.name != "stablehlo.while":
        return {}, 1
    loop = Loop(around.operation)
    return (loop_counters(loop) if op.block == loop.body else None) or ({}, 1)
