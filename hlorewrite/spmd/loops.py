"""The parts of ``stablehlo.while`` and the number of its iterations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hlorewrite.ir.binding import ir
from hlorewrite.ir.view import defining_op, terminator
from hlorewrite.spmd.constants import constant_attribute


@dataclass(frozen=True)
class Loop:
    """A ``stablehlo.while``: position i is its operand, its arguments in both regions, its yield and its result."""

    op: ir.Operation

    @cached_property
    def condition(self) -> ir.Block:
        """The block that decides whether to go on."""
        return self.op.regions[0].blocks[0]

    @cached_property
    def body(self) -> ir.Block:
        """The block that computes the next carried values."""
        return self.op.regions[1].blocks[0]

    @property
    def predicate(self) -> ir.Value:
        """What the condition returns."""
        return terminator(self.condition).operands[0]

    @property
    def yields(self) -> ir.OpOperandList:
        """The next carried values."""
        return terminator(self.body).operands


@dataclass(frozen=True)
class LoopCounter:
    """The carried value that a loop's condition compares with a bound.

    Attributes:
      position: of the counter among what the loop carries.
      compare: the ``stablehlo.compare`` of the condition.
      bound_side: which operand of it is the bound.
      direction: of the comparison, with the counter on its left.
      start: what the counter starts with.
      bound: what it is compared with.
      step: by how much it grows in each iteration; never zero.
    """

    position: int
    compare: ir.Operation
    bound_side: int
    direction: str
    start: int
    bound: int
    step: int

    @property
    def trips(self) -> int | None:
        """How often the loop runs; None where the counter does not meet its bound."""
        return _count(self.start, self.bound, self.step, self.direction)


def loop_counter(loop: Loop) -> LoopCounter | None:
    """The counter of a loop whose condition is one comparison; None when it does not start, step and end at constants.

    Args:
      loop: the loop.
    """
    compare = defining_op(loop.predicate)
    if compare is None or compare.name != "stablehlo.compare":
        return None
    return _counter(loop, compare, 1) or _counter(loop, compare, 0)


def _counter(loop: Loop, compare: ir.Operation, bound_side: int) -> LoopCounter | None:
    """The counter, if one side of a comparison is the bound."""
    counter = compare.operands[1 - bound_side]
    if not isinstance(counter, ir.BlockArgument) or counter.owner != loop.condition:
        return None
    direction = str(compare.attributes["comparison_direction"]).split()[-1].rstrip(">")
    if bound_side == 0:
        direction = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}.get(direction, direction)
    position = counter.arg_number
    start, step = constant_integer(loop.op.operands[position]), counter_step(loop, position)
    bound = _constant_in(loop, compare.operands[bound_side])
    if start is None or bound is None or step is None:
        return None
    return LoopCounter(position, compare, bound_side, direction, start, bound, step)


def trip_count(op: ir.Operation) -> int | None:
    """How often a ``while`` runs its body, when its counter starts, steps and ends at constants.

    Args:
      op: a ``stablehlo.while``.

    Returns:
      The count; None when it is not known here.
    """
    counter = loop_counter(Loop(op))
    return None if counter is None else counter.trips


def _count(start: int, bound: int, step: int, direction: str) -> int | None:
    if direction == "NE":
        return (bound - start) // step if (bound - start) % step == 0 and (bound - start) // step >= 0 else None
    if direction in ("LE", "GE"):
        bound += 1 if direction == "LE" else -1
    if (direction in ("LT", "LE")) != (step > 0) or direction == "EQ":
        return None
    return max(0, -((start - bound) // step) if step > 0 else -((bound - start) // -step))


def _constant_in(loop: Loop, value: ir.Value) -> int | None:
    """A constant, also when it is carried through the loop unchanged."""
    if isinstance(value, ir.BlockArgument):
        if value.owner != loop.condition:
            return None
        position = value.arg_number
        if loop.yields[position] != loop.body.arguments[position]:
            return None
        value = loop.op.operands[position]
    return constant_integer(value)


def counter_step(loop: Loop, position: int) -> int | None:
    """By how much a carried value grows in each iteration; None when that is not a constant other than zero.

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
    """The value of an integer constant with one element, looking through converts and reshapes."""
    op = defining_op(value)
    # Ends: each step goes to an operand.
    while op is not None and op.name in ("stablehlo.convert", "stablehlo.reshape", "stablehlo.broadcast_in_dim"):
        op = defining_op(op.operands[0])
    attribute = None if op is None else constant_attribute(op)
    if not isinstance(attribute, ir.DenseIntElementsAttr) or not attribute.is_splat:
        return None
    number = attribute.get_splat_value()  # not by way of numpy, which has no integers of 2 and 4 bits
    return int(number.value) if isinstance(number, (ir.IntegerAttr, ir.BoolAttr)) else None
