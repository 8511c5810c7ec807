"""Candidates that are not compiled, because XLA alone makes one call of all."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.choose.candidates import RewriteCandidate
from hlorewrite.jaxbridge.choose.selection import cannot_be_better
from hlorewrite.jaxbridge.step.report import RewriteReport, Rewritten, StepCollective
from hlorewrite.jaxbridge.step.variants import Variant

SENT = StepCollective("all_reduce", 1000, 1, "step.py:1:1", Fraction(7, 4))
ALONE = Measured(1, 1000, 1750, 9000, 0.0, "")
BODY = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{ {op} return %a : tensor<4xf32> }}"


def candidate(*after: StepCollective, before: tuple[StepCollective, ...] = (replace(SENT, trips=8),), op: str = "",
              exposed: bool = True) -> RewriteCandidate:
    module = parse(BODY.format(op=op))
    report = RewriteReport("comm-shift", True, exposed, before, after, (), 1, "digest")
    return RewriteCandidate("gpu", module, Rewritten(module, b"", report), Variant(()))


def test_as_many_bytes_in_one_call_are_not_better():
    assert cannot_be_better(candidate(SENT), ALONE)
    assert cannot_be_better(candidate(SENT, SENT), replace(ALONE, bytes=2000, wire=3500))


@pytest.mark.parametrize(("made", "alone"), [
    (candidate(SENT), replace(ALONE, calls=2)),  # fewer calls are possible
    (candidate(SENT), replace(ALONE, wire=1800)),  # it sends less
    (candidate(SENT), replace(ALONE, bytes=900)),  # calls are split, which may save memory
    (candidate(), replace(ALONE, bytes=0, wire=0)),  # it sends nothing
    (candidate(SENT), replace(ALONE, trips_known=False)),
    (candidate(SENT, op="%i = stablehlo.partition_id : tensor<ui32>"), ALONE),  # a slice for each device may halve it
    (candidate(SENT, before=(SENT,), exposed=False), ALONE),  # the passes were about something else
], ids=["calls", "less", "split", "nothing", "trips", "slices", "same"])
def test_what_may_be_better_is_compiled(made: RewriteCandidate, alone: Measured):
    assert not cannot_be_better(made, alone)


