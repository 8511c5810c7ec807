"""Loops of StableHLO: the trip count of a ``stablehlo.while``, its counter, and the values of its integers."""

import functools
from dataclasses import dataclass

import numpy as np

from hlorewrite.analysis.per_device_constants import PerDeviceConstants, numpy_type
from hlorewrite.ir import Loop, defining_op, holds_number, ir
from hlorewrite.ops.attributes import constant_attribute
from hlorewrite.ops.table import SPREADS

# ---- trip counts

# The trip count of a ``stablehlo.while``, and its counter.


def trip_count(op: ir.Operation) -> int | None:
    """How often a ``while`` runs its body, if the start, step and end of its counter are constants.

    Args:
      op: a ``stablehlo.while``.

    Returns:
      The count; None when it is not known here.
    """
    counter = counter_of(Loop(op))
    return None if counter is None else counter.trips


@dataclass(frozen=True)
class LoopCounter:
    """The counter of a loop: a carried integer that its condition compares with a bound.

    Attributes:
      compare: the comparison.
      position: its index among the carried values.
      side: which operand of the comparison it is; the bound is the other.
      direction: the comparison (``LT`` and the like) that holds while the loop runs, with the counter on the left.
      start: its value before the first iteration.
      bound: the value that it is compared with.
      step: its increment in each iteration.
    """

    compare: ir.Operation
    position: int
    side: int
    direction: str
    start: int
    bound: int
    step: int

    @property
    def trips(self) -> int | None:
        """How often the loop runs; None when it may never end."""
        return _count(self.start, self.bound, self.step, self.direction)


def counter_of(loop: Loop) -> LoopCounter | None:
    """The counter of a loop; None unless its start, step and end are constants.

    Args:
      loop: the loop.
    """
    compare = defining_op(loop.predicate)
    if compare is None or compare.name != "stablehlo.compare":
        return None
    return _counter(loop, compare, 0) or _counter(loop, compare, 1)


def _counter(loop: Loop, compare: ir.Operation, side: int) -> LoopCounter | None:
    """The counter, if that is what one side of a comparison is."""
    counter = compare.operands[side]
    if not isinstance(counter, ir.BlockArgument) or counter.owner != loop.condition:
        return None
    direction = str(compare.attributes["comparison_direction"]).split()[-1].rstrip(">")
    if side:
        direction = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}.get(direction, direction)
    bound = _constant_in(loop, compare.operands[1 - side])
    start = constant_integer(loop.op.operands[counter.arg_number])
    step = counter_step(loop, counter.arg_number)
    if bound is None or start is None or step is None:
        return None
    found = LoopCounter(compare, counter.arg_number, side, direction=direction, start=start, bound=bound, step=step)
    # A counter that would leave the range of its type wraps around.
    return found if found.trips is None or holds_number(counter.type, start + step * found.trips) else None


def _count(start: int, bound: int, step: int, direction: str) -> int | None:
    if direction == "NE":
        return (bound - start) // step if (bound - start) % step == 0 and (bound - start) // step >= 0 else None
    if direction in ("LE", "GE"):
        bound += 1 if direction == "LE" else -1
    if (direction in ("LT", "LE")) != (step > 0) or direction == "EQ":
        return None
    return max(0, -((start - bound) // step) if step > 0 else -((bound - start) // -step))


def _constant_in(loop: Loop, value: ir.Value) -> int | None:
    """A constant, looking through values that the loop carries unchanged."""
    if isinstance(value, ir.BlockArgument):
        if value.owner != loop.condition:
            return None
        position = value.arg_number
        if not loop.keeps(position):
            return None
        value = loop.op.operands[position]
    return constant_integer(value)


def counter_step(loop: Loop, position: int) -> int | None:
    """The increment of a carried value in each iteration; None unless it is a constant other than zero.

    Args:
      loop: the loop.
      position: which of its carried values.
    """
    counter = loop.body.arguments[position]
    update = defining_op(loop.yields[position])
    if update is None or update.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    left, right = update.operands
    if update.name == "stablehlo.add" and right == counter:
        left, right = right, left
    step = constant_integer(right)
    if left != counter or not step:
        return None
    return step if update.name == "stablehlo.add" else -step


def constant_integer(value: ir.Value) -> int | None:
    """The value of an integer constant with one element, looking through converts and reshapes.

    Args:
      value: any value.

    Returns:
      The number; None if the constant, or the result of a convert on the way, is not an integer in the range of its
      type: a convert to fewer bits or another sign changes the number, and floats are rounded.
    """
    types, op = [value.type], defining_op(value)
    # Ends: each step goes to an operand.
    while op is not None and op.name in ("stablehlo.convert", *SPREADS):
        types.append(op.operands[0].type)
        op = defining_op(op.operands[0])
    attribute = None if op is None else constant_attribute(op)
    if not isinstance(attribute, ir.DenseIntElementsAttr) or not attribute.is_splat:
        return None
    splat = attribute.get_splat_value()  # not through numpy, which has no integers of 2 and 4 bits
    if not isinstance(splat, (ir.IntegerAttr, ir.BoolAttr)):
        return None
    number = int(splat.value)
    return number if all(holds_number(type_, number) for type_ in types) else None


# ---- values of a loop's integers in each iteration, for counters with constant start, step and end


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
