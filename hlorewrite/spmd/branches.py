"""How often each branch is taken, where the counter of the loop around decides.

``cond(i % 4 == 3, ...)`` in a loop of known trip count takes each branch a known number of times. The predicate is
evaluated for every iteration, as index expressions are for every device.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlorewrite.ir.binding import ir
from hlorewrite.spmd.device_map import DeviceMap, Table, numpy_type
from hlorewrite.spmd.loops import Loop, constant_integer, counter_step, trip_count

_MOST_TRIPS = 4096


def taken_shares(op: ir.Operation) -> tuple[Fraction, ...] | None:
    """The share of the executions of a branching op in which it takes each branch.

    Args:
      op: a ``stablehlo.case`` or ``stablehlo.if``.

    Returns:
      A share for each region, 1 in all; None unless its predicate is computed from constants, or from constants and the
      counters of the loop of known trip count whose body it stands in.
    """
    counters, trips = _counters(op)
    taken = DeviceMap.of_iterations(counters, trips).table(op.operands[0])
    if taken is None:
        return None
    last = len(op.regions) - 1
    chosen = [_branch(op, int(value), last) for value in taken]
    return tuple(Fraction(chosen.count(number), trips) for number in range(last + 1))


def _counters(op: ir.Operation) -> tuple[dict[ir.Value, Table], int]:
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


def _branch(op: ir.Operation, value: int, last: int) -> int:
    """The region an op runs: an index out of range means the last one."""
    if op.name == "stablehlo.if":
        return 0 if value else 1
    return value if 0 <= value <= last else last


def _counted(loop: Loop, argument: ir.BlockArgument, trips: int) -> Table | None:
    """What a counter holds in each iteration; None when the argument is no counter that starts at a constant."""
    start = constant_integer(loop.op.operands[argument.arg_number])
    if start is None:
        return None
    step = 0 if loop.yields[argument.arg_number] == argument else counter_step(loop, argument.arg_number)
    tensor = ir.RankedTensorType(argument.type)
    if step is None or tensor.shape or (dtype := numpy_type(argument.type)) is None:
        return None
    values = start + step * np.arange(trips, dtype=object)
    if dtype.kind == "b" or any(not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max for value in values):
        return None
    return tuple(np.array(value, dtype) for value in values)
