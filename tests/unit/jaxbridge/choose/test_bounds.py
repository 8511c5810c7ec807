"""Candidates that are not compiled, because XLA alone makes one call of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from loop_texts import eight_times

from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.choose.candidates import RewriteCandidate
from hlorewrite.jaxbridge.choose.carry_scatter import likely_one_call
from hlorewrite.jaxbridge.choose.comparator import cannot_be_better
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


def summing(body: str, more: str = "") -> Module:
    """A loop of eight iterations whose body makes ``%s``, the next sum; ``more`` stands before it."""
    return parse(f'''
func.func @main(%x: tensor<4xf32>, %zero: tensor<4xf32>) -> tensor<4xf32> {{
  %first = stablehlo.constant dense<0> : tensor<i32>
  {more}
  {eight_times("%sum", "%zero", "tensor<4xf32>", body, "%s")}
  return %loop#1 : tensor<4xf32>
}}''')


def all_reduce(value: str, groups: str = "[[0, 1, 2, 3, 4, 5, 6, 7]]", op: str = "add") -> str:
    return f'''"stablehlo.all_reduce"({value}) ({{
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %o = stablehlo.{op} %l, %r : tensor<f32>
        stablehlo.return %o : tensor<f32>
      }}) {{replica_groups = dense<{groups}> : tensor<{groups.count("[") - 1}x{8 // (groups.count("[") - 1)}xi64>}} :
      (tensor<4xf32>) -> tensor<4xf32>'''


MOVED = f"%r1 = {all_reduce('%x')} %s = stablehlo.add %sum, %r1 : tensor<4xf32>"
HALVES = "[[0, 1, 2, 3], [4, 5, 6, 7]]"


def test_sums_that_a_loop_adds_up_become_one_call():
    assert likely_one_call(summing(MOVED)) == 28  # 16 bytes x 7/4, once
    assert likely_one_call(summing(MOVED, more=f"%y = {all_reduce('%x')}")) == 56


@pytest.mark.parametrize("module", [
    lambda: summing(f"%r1 = {all_reduce('%sum')} %s = stablehlo.tanh %r1 : tensor<4xf32>"),  # it stays in the loop
    lambda: summing(f"%r1 = {all_reduce('%x', op='maximum')} %s = stablehlo.add %sum, %r1 : tensor<4xf32>"),
    lambda: summing(MOVED, more=f"%y = {all_reduce('%x', HALVES)}"),  # two groups are two calls
    lambda: summing(MOVED, more='%y = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = '
                    'dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>} : (tensor<4xf32>) -> tensor<32xf32>'),
    lambda: summing("%s = stablehlo.add %sum, %x : tensor<4xf32>"),  # nothing is sent
], ids=["stays", "maximum", "groups", "gather", "nothing"])
def test_where_more_than_one_call_or_none_is_left(module: Callable[[], Module]):
    assert likely_one_call(module()) is None
