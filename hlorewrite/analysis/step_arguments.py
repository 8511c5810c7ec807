"""The argument of a step that a value is read from: a parameter, however it is sliced, converted or carried."""

from hlorewrite.ir import CALL, FUNCTION, MANUAL, WHILE, Loop, View, defining_op, ir, is_private, region_op, returned
from hlorewrite.ops.table import MOVES_OF_ONE, SAME

_ROUNDING = ("stablehlo.convert", "stablehlo.reduce_precision")


def argument_read(value: ir.Value, view: View) -> ir.Value | None:
    """The argument of a public function from which a value takes all or some of its elements.

    Args:
      value: any value.
      view: the module.

    Returns:
      The argument; None for a value that is computed, or that a loop replaces from iteration to iteration.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> view = View(parse("func.func @main(%w: tensor<4x8xf32>) -> tensor<8x4xf32> {"
      ...                   "%t = stablehlo.transpose %w, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>"
      ...                   "return %t : tensor<8x4xf32> }"))
      >>> transpose, = view.ops("stablehlo.transpose")
      >>> argument_read(transpose.results[0], view) == view.functions["main"].regions[0].blocks[0].arguments[0]
      True
    """
    calls: list[ir.Operation] = []
    # Ends: each step goes to an operand, out of a region, or into a function, which no function calls in a circle.
    while True:
        op = defining_op(value)
        if op is None:
            argument, parent = ir.BlockArgument(value), region_op(value)
            if parent.name == FUNCTION and not is_private(parent):
                return value
            if parent.name == FUNCTION and calls:
                value = calls.pop().operands[argument.arg_number]
            elif parent.name == MANUAL or (parent.name == WHILE and Loop(parent).keeps(argument.arg_number)):
                value = parent.operands[argument.arg_number]
            else:
                return None
        elif op.name in SAME:
            value = op.operands[ir.OpResult(value).result_number]
        elif op.name in MOVES_OF_ONE or op.name in _ROUNDING:
            value = op.operands[0]
        elif op.name == CALL and (inside := returned(op, ir.OpResult(value).result_number, view)):
            calls.append(op)
            value = inside[0]
        else:
            return None
