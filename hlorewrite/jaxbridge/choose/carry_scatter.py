"""Loop-carried sums that a partitioned step computes inside scatters, where no reduction can be deferred."""

from fractions import Fraction

from hlorewrite.ir import ALL_REDUCE, Module, View, defining_op, ir
from hlorewrite.jaxbridge.step.report import collectives_by_op


def scatters_into_a_choice(module: Module) -> bool:
    """Whether a scatter adds to the result of a select, as XLA:GPU's pipeline writes a carry that one device keeps."""
    return any(map(_adds_to_a_choice, View(module).ops("stablehlo.scatter")))


def share_of_choices(module: Module) -> Fraction:
    """The share of the module's bytes that the all-reduces of such scatters send.

    The rule `carry-inside-scatter` matches these all-reduces, so this bounds what it can save.

    Args:
      module: a module after XLA's partitioner.

    Returns:
      A share of the bytes on the wire; 1 if there are not as many all-reduces as scatters, so the share is unknown.
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


def _adds_to_a_choice(op: ir.Operation | None) -> bool:
    if op is None or op.name != "stablehlo.scatter":
        return False
    maker = defining_op(op.operands[0])
    return maker is not None and maker.name == "stablehlo.select" and maker.operands[1] != maker.operands[2]
