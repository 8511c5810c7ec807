"""How often each branch is taken, where the counter of the loop around decides.

``cond(i % 4 == 3, ...)`` in a loop of known trip count takes each branch a known number of times. The predicate is
evaluated for every iteration, as index expressions are for every device.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlorewrite.ir.binding import ir
from hlorewrite.spmd.device_map import DeviceMap, numpy_type
from hlorewrite.spmd.loops import Loop, constant_integer, counter_step, trip_count

_MOST_TRIPS = 1 << 16


def taken_shares(op: ir.Operation) -> tuple[Fraction, ...] | None:
    """The share of the executions of a branching op in which it takes each branch.

    Args:
      op: a ``stablehlo.case`` or ``stablehlo.if``.

    Returns:
      A share for each region, 1 in all; None unless its predicate is computed from constants, or from constants and the
      counters of the loop of known trip count whose body it stands in.
    """
    counters, trips = _counters(op)
    table = DeviceMap.of_iterations(counters).table(op.operands[0])
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
    trips = trip_count(loop.op) if op.block == loop.body else None
    if trips is None or not 0 < trips <= _MOST_TRIPS:
        return {}, 1
    counted = {argument: _counted(loop, argument, trips) for argument in loop.body.arguments}
    return {argument: table for argument, table in counted.items() if table is not None}, trips


def _counted(loop: Loop, argument: ir.BlockArgument, trips: int) -> np.ndarray | None:
    """What a counter holds in each iteration; None when the argument is no counter that starts at a constant."""
    start = constant_integer(loop.op.operands[argument.arg_number])
    if start is None:
        return None
    step = 0 if loop.yields[argument.arg_number] == argument else counter_step(loop, argument.arg_number)
    tensor = ir.RankedTensorType(argument.type)
    if step is None or tensor.shape or (dtype := numpy_type(argument.type)) is None:
        return None
    ends = (start, start + step * (trips - 1))
    if dtype.kind == "b" or min(ends) < np.iinfo(dtype).min or max(ends) > np.iinfo(dtype).max:
        return None
    return (start + step * np.arange(trips, dtype=object)).astype(dtype)
