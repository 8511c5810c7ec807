"""Values of a loop's integers in each iteration, for counters with constant start, step and end."""

import functools

import numpy as np

from hlorewrite.analysis.loops import constant_integer, counter_step, trip_count
from hlorewrite.analysis.per_device_constants import PerDeviceConstants, numpy_type
from hlorewrite.ir import Loop, ir

_MOST_TRIPS = 1 << 16


def loop_counters(loop: Loop) -> tuple[dict[ir.Value, np.ndarray], int] | None:
    """The values of a loop's counters in each iteration.

    Args:
      loop: the loop.

    Returns:
      Scalar arguments of the body with a value for each iteration, and how many iterations there are; None if the
      trip count is not known, zero, or above 65536.
    """
    trips = trip_count(loop.op)
    if trips is None or not 0 < trips <= _MOST_TRIPS:
        return None
    counted = {argument: _counted(loop, argument, trips) for argument in loop.body.arguments}
    return {argument: table for argument, table in counted.items() if table is not None}, trips


def in_each_iteration(loop: Loop, value: ir.Value) -> list[int] | None:
    """A scalar integer of a loop's body, iteration by iteration.

    Args:
      loop: the loop.
      value: a value read in its body.

    Returns:
      One number for each iteration; None unless it is computed from constants and counters alone.
    """
    return IterationNumbers(loop).of(value)


class IterationNumbers:
    """The scalar integers of a loop's body, iteration by iteration; its counters are read once.

    Args:
      loop: the loop; it stays as it is while this is used.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    @functools.cached_property
    def _known(self) -> tuple[PerDeviceConstants, int] | None:
        counters = loop_counters(self._loop)
        return None if counters is None else (PerDeviceConstants.of_iterations(counters[0]), counters[1])

    def of(self, value: ir.Value) -> list[int] | None:
        """The numbers of a value; see ``in_each_iteration``."""
        if self._known is None:
            return None
        table = self._known[0].table(value)
        return None if table is None else [int(number) for number in np.broadcast_to(table[0], (self._known[1],))]


def _counted(loop: Loop, argument: ir.BlockArgument, trips: int) -> np.ndarray | None:
    """The value of a counter in each iteration; None when the argument is not a counter that starts at a constant."""
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
