"""The trip count of a ``stablehlo.while``, and its counter."""

from dataclasses import dataclass

from hlorewrite.ir import Loop, defining_op, holds_number, ir
from hlorewrite.ops.attributes import constant_attribute
from hlorewrite.ops.table import SPREADS


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
