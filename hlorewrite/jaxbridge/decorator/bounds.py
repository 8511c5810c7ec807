"""What a candidate can be at best, before XLA compiles it: none is better where XLA alone makes one call of all."""

from __future__ import annotations

from fractions import Fraction

from hlorewrite.hlo.xla_hazards import moved_out
from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.collectives import ALL_REDUCE, COLLECTIVES
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.inline import inline_calls
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, ancestors
from hlorewrite.jaxbridge.against_xla.comparison import NOISE
from hlorewrite.jaxbridge.against_xla.measured import Measured
from hlorewrite.jaxbridge.decorator.judge import RewriteCandidate
from hlorewrite.jaxbridge.decorator.report import collectives_by_op

_DEVICE_NUMBERS = ("stablehlo.partition_id", "stablehlo.replica_id")


def cannot_be_better(candidate: RewriteCandidate, alone: Measured) -> bool:
    """Whether nothing that XLA makes of a candidate is better than XLA alone, in bytes or in calls.

    Fewer calls than one are none. Bytes stay what the module says: XLA halves an all-reduce only where each device
    takes its slice of the result, by its number, and code motion is switched off for candidates. A variant of the
    passes that takes less memory moves less, so it sends no less either.

    Args:
      candidate: the rewritten module, with what it sends.
      alone: what XLA alone makes of the step.
    """
    wire, calls = candidate.order
    payloads = sum(each.executed_bytes for each in candidate.made.report.after)
    return (alone.trips_known and alone.calls == 1 and calls > 0 and not candidate.keeps_communication
            and wire >= alone.wire * (1 - NOISE) and payloads <= alone.bytes * (1 + NOISE)
            and not View(candidate.made.module).ops(*_DEVICE_NUMBERS))


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
