"""Carried sums of a partitioned step: those inside scatters, where no reduction can be deferred, and those whose
reductions XLA:GPU alone moves out of their loops."""

from fractions import Fraction

from hlorewrite.hlo.xla_hazards import moved_out
from hlorewrite.ir import ALL_REDUCE, COLLECTIVES, Editor, Module, inline_calls, ir, op_key
from hlorewrite.ir.view import View, ancestors, defining_op
from hlorewrite.jaxbridge.step.report import collectives_by_op


def scatters_into_a_choice(module: Module) -> bool:
    """Whether a scatter adds to what a select takes, as XLA:GPU's pipeline writes a carry that one device keeps."""
    return any(map(_adds_to_a_choice, View(module).ops("stablehlo.scatter")))


def share_of_choices(module: Module) -> Fraction:
    """What the all-reduces of such scatters send, of all that the module sends.

    The rule `carry-inside-scatter` matches these all-reduces, so no more can be saved by it.

    Args:
      module: a module after XLA's partitioner.

    Returns:
      A share of the bytes on the wire; 1 where a scatter has no all-reduce of its own, so that nothing is known.
    """
    view = View(module)
    sent = collectives_by_op(view)
    of_choices, matched = Fraction(0), 0
    for op, executed in sent:
        if op.name == ALL_REDUCE.op and any(map(_adds_to_a_choice, map(defining_op, op.operands))):
            of_choices, matched = of_choices + executed.wire_bytes, matched + 1
    total = sum((executed.wire_bytes for _, executed in sent), Fraction(0))
    scatters = sum(map(_adds_to_a_choice, view.ops("stablehlo.scatter")))
    return of_choices / total if total and matched == scatters else Fraction(1)


def likely_one_call(partitioned: Module) -> Fraction | None:
    """What XLA:GPU alone puts on the wire where it is expected to make one call of all collectives of a step.

    Its code motion moves sums that a loop adds up out of it, and then calls of equal groups and types become one.

    Args:
      partitioned: what XLA's partitioner made of the step.

    Returns:
      Bytes of one device; None where more than one call is expected.
    """
    ops = View(partitioned).ops(*COLLECTIVES)
    if any(op.name != ALL_REDUCE.op or _loops_around(op) > 1 for op in ops):
        return None
    copy = partitioned.clone()
    inline_calls(Editor(View(copy)))
    view = View(copy)
    sent, moved = collectives_by_op(view), {op_key(op) for op in moved_out(view)}
    alike = {(str(op.attributes["replica_groups"]), _element(op)) for op, _ in sent}
    if len(alike) != 1 or any(_loops_around(op) > (op_key(op) in moved) for op, _ in sent):
        return None
    return sum((executed.wire_bytes / executed.trips for _, executed in sent), Fraction(0))


def _loops_around(op: ir.Operation) -> int:
    return sum(parent.name == "stablehlo.while" for parent in ancestors(op))


def _element(op: ir.Operation) -> str:
    return str(ir.RankedTensorType(op.operands[0].type).element_type)


def _adds_to_a_choice(op: ir.Operation | None) -> bool:
    if op is None or op.name != "stablehlo.scatter":
        return False
    maker = defining_op(op.operands[0])
    return maker is not None and maker.name == "stablehlo.select" and maker.operands[1] != maker.operands[2]
