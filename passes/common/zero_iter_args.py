"""Removes carried values that are always zero: the remains of sums whose terms are all reduced later."""

from collections.abc import Iterable

from hlorewrite.ir import Editor, Loop, element_bytes, element_count, element_type, ir, is_static_tensor
from hlorewrite.ir.view import View, ancestors, defining_op, terminator
from hlorewrite.ops.reducers import is_identity
from hlorewrite.passes.common.emit import splat_constant
from hlorewrite.passes.common.shard_index import splat_number

_OF_FIRST = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.convert",
             "stablehlo.slice", "stablehlo.dynamic_slice")
_OF_TWO = ("stablehlo.add", "stablehlo.subtract", "stablehlo.dynamic_update_slice")
_OF_ALL = ("stablehlo.concatenate",)
_SCALES = ("stablehlo.multiply", "stablehlo.divide")
_LEAST = 2.0**-14
_MOST_STEPS = 4096


def drop_carried_zeros(view: View, editor: Editor) -> int:
    """Replaces carried values that are zero in every iteration by constants, so XLA no longer carries them.

    A carried value that starts as zeros, and stays zeros whenever it was zeros, is always zeros, by induction over
    iterations.

    Args:
      view: the view of the module.
      editor: its editor.

    Returns:
      How many carried values were dropped.
    """
    dropped = 0
    for op in view.ops("stablehlo.while"):
        if any(outer.name == "stablehlo.while" for outer in ancestors(op)):
            continue
        zeros = _Zeros()
        zeros.loop(op, range(len(op.results)))
        for loop, position in zeros.found:
            _drop(Loop(loop), position, editor)
        dropped += len(zeros.found)
    return dropped


class _Zeros:
    """The carried values of a loop, and of loops in it, that are zero in every iteration.

    Attributes:
      found: loops and positions.
    """

    def __init__(self) -> None:
        self.found: list[tuple[ir.Operation, int]] = []
        self._assumed: set[ir.Value] = set()
        self._steps = 0

    def loop(self, op: ir.Operation, positions: Iterable[int]) -> set[int]:
        """Those of the positions at which a loop starts with zeros and carries zeros in every iteration; remembers
        them.

        A single number is left alone: it may be a counter.
        """
        loop = Loop(op)
        left = {position for position in positions if element_count(op.results[position].type) > 1
                and loop.yields[position] != loop.body.arguments[position] and self.is_zero(op.operands[position])}
        # Ends: each round takes a position away.
        while left:
            arguments = {loop.body.arguments[position] for position in left}
            outside, first = set(self._assumed), len(self.found)
            self._assumed |= arguments
            wrong = {position for position in left if not self.is_zero(loop.yields[position])}
            if not wrong:
                self.found += [(op, position) for position in sorted(left)]
                return left
            self._assumed = outside
            del self.found[first:]
            left -= wrong
        return set()

    def is_zero(self, value: ir.Value) -> bool:
        """Whether a value is zeros, given the assumed ones."""
        self._steps += 1
        if self._steps > _MOST_STEPS or not _is_real(value.type):
            return False
        if value in self._assumed or not element_count(value.type) or is_identity(value, "sum"):
            return True
        op = defining_op(value)
        if op is None:
            return self._is_zero_argument(ir.BlockArgument(value))
        if op.name in _OF_FIRST:
            return self.is_zero(op.operands[0])
        if op.name in _OF_TWO:
            return all(self.is_zero(operand) for operand in list(op.operands)[:2])
        if op.name in _OF_ALL:
            return all(self.is_zero(operand) for operand in op.operands)
        if op.name == "stablehlo.pad":
            return is_identity(op.operands[1], "sum") and self.is_zero(op.operands[0])
        if op.name in _SCALES:
            return _is_positive(op.operands[1]) and self.is_zero(op.operands[0])
        if op.name != "stablehlo.while":
            return False
        position = ir.OpResult(value).result_number
        known = {at for loop, at in self.found if loop == op}
        return position in known or position in self.loop(op, [position])

    def _is_zero_argument(self, argument: ir.BlockArgument) -> bool:
        """Whether an argument is zeros: one that a loop carries unchanged equals its initial value."""
        owner = argument.owner.owner.operation
        if owner.name != "stablehlo.while" or argument.owner != Loop(owner).body:
            return False
        position = argument.arg_number
        return Loop(owner).yields[position] == argument and self.is_zero(owner.operands[position])


def _is_positive(value: ir.Value) -> bool:
    """Whether a value is a positive splat: zero times it, or divided by it, stays zero.

    Numbers are read before they are converted, so only those count that are neither zero nor infinite in f16.
    """
    number = splat_number(value)
    return number is not None and element_bytes(element_type(value)) >= 2 and _LEAST <= number <= 1 / _LEAST


def _is_real(type_: ir.Type) -> bool:
    return is_static_tensor(type_) and isinstance(ir.RankedTensorType(type_).element_type, ir.FloatType)


def _drop(loop: Loop, position: int, editor: Editor) -> None:
    """Makes the readers of a carried value read a constant; the loop passes the value on unchanged."""
    result, argument = loop.op.results[position], loop.body.arguments[position]
    with ir.Location.unknown(editor.context):
        zero = ir.FloatAttr.get(ir.RankedTensorType(result.type).element_type, 0.0)
    constant = splat_constant(editor, zero, result.type, loop.op)
    editor.replace(result, constant)
    editor.replace(argument, constant)
    editor.set_operand(terminator(loop.body), position, argument)
