"""Signatures of values: what a value is computed from, a few ops deep.

Values with equal numbers (``value_numbers``) have equal signatures, so where all signatures differ nothing has to be
numbered. A signature looks at a few ops where a number needs all that a value is computed from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hlorewrite.ir.binding import ir
from hlorewrite.ir.view import defining_op, readable
from hlorewrite.passes.common.value_numbers import is_function

_DEPTHS = (1, 2, 4)


def some_signatures_meet(values: Iterable[ir.Value]) -> bool:
    """Whether two of some values may be equal, as far as a few of the ops that they are made from show.

    Args:
      values: of one module without calls.

    Returns:
      False where no two of them have one number.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> view = View(parse("func.func @f(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {"
      ...                   "%0 = stablehlo.add %a, %a : tensor<f32>  %1 = stablehlo.negate %a : tensor<f32>"
      ...                   "return %0, %1 : tensor<f32>, tensor<f32> }"))
      >>> results = [op.results[0] for op in view.ops("stablehlo.add", "stablehlo.negate")]
      >>> some_signatures_meet(results), some_signatures_meet([*results, results[0]])
      (False, True)
    """
    left = list(values)
    known: dict[tuple[ir.Value, int], int] = {}
    for depth in _DEPTHS:
        signatures = [_signature(value, depth, known) for value in left]
        several = Counter(signatures)
        left = [value for value, signature in zip(left, signatures, strict=True) if several[signature] > 1]
        if not left:
            return False
    return True


def _signature(value: ir.Value, depth: int, known: dict[tuple[ir.Value, int], int]) -> int:
    """A hash of the ops that a value is made from, down to a depth; of arguments, and results with a number of their
    own, it is the value itself."""
    found = known.get((value, depth))
    if found is not None:
        return found
    op = defining_op(value)
    if op is None or not is_function(op):
        signature = hash(value)
    elif depth == 0 or len(op.operands) == 0:
        signature = hash((op.name, readable(op, "value") if len(op.operands) == 0 else None))
    else:
        signature = hash((op.name, value.type, tuple(_signature(each, depth - 1, known) for each in op.operands)))
    known[value, depth] = signature
    return signature
