"""Whether a loop's body may run once where the loop itself may run not at all."""

from collections.abc import Iterable, Iterator

from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.regions import Loop
from hlorewrite.ir.view import View, nested_ops
from hlorewrite.passes.common.effects import Effects


def why_not_speculative(loop: Loop, view: View) -> str:
    """Why the body may not run on the values before a loop of no iterations, its results then dropped.

    Its effects would be seen, a collective in it would send what the original does not, and a loop in it that ends on
    the values of an iteration need not end on those before the first.

    Args:
      loop: the loop.
      view: the module.

    Returns:
      The reason, as the end of a sentence; empty when it may.
    """
    if any(not isinstance(result.type, ir.RankedTensorType) for result in loop.op.results):
        return "it may run not at all, and it carries what is not a tensor"
    body = [each.operation for each in loop.body.operations]
    if name := Effects(view).first(body, collectives=True):
        return f"it may run not at all, and its body runs {name}"
    if any(op.name == "stablehlo.while" and trip_count(op) is None for op in _reached(body, view, set())):
        return "it may run not at all, and it is not known whether a loop in it then ends"
    return ""


def _reached(ops: Iterable[ir.Operation], view: View, seen: set[int]) -> Iterator[ir.Operation]:
    """Ops, what they hold and what they call; ``seen`` are the functions entered."""
    for op in (inner for each in ops for inner in nested_ops(each)):
        yield op
        callee = view.callee(op) if op.name == "func.call" else None
        if callee is not None and op_key(callee) not in seen:
            seen.add(op_key(callee))
            yield from _reached([callee], view, seen)
