"""Which inputs may decide trip counts, branches and indices, and what integers are drawn for them and for others."""

from __future__ import annotations

import numpy as np
import pytest

from hlorewrite.checks.reference.inputs import random_inputs
from hlorewrite.checks.reference.program import prepare
from hlorewrite.ir.load import parse

LOOP = """
func.func @main(%n: tensor<i32>, %x: tensor<64xi32>) -> (tensor<64xi32>, tensor<i32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %c0, %v = %x, %m = %n) : tensor<i32>, tensor<64xi32>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.add %v, %v : tensor<64xi32>
    stablehlo.return %next, %w, %m : tensor<i32>, tensor<64xi32>, tensor<i32>
  }
  return %r#1, %r#2 : tensor<64xi32>, tensor<i32>
}"""
CASE = """
func.func @main(%n: tensor<i32>, %x: tensor<64xi32>) -> tensor<64xi32> {
  %y = "stablehlo.case"(%n) ({ stablehlo.return %x : tensor<64xi32> }, {
    %z = stablehlo.add %x, %x : tensor<64xi32>
    stablehlo.return %z : tensor<64xi32> }) : (tensor<i32>) -> tensor<64xi32>
  return %y : tensor<64xi32>
}"""
SLICE = """
func.func @main(%n: tensor<i32>, %x: tensor<64xi32>) -> tensor<64xi32> {
  %s = stablehlo.dynamic_slice %x, %n, sizes = [4] : (tensor<64xi32>, tensor<i32>) -> tensor<4xi32>
  %y = stablehlo.dynamic_update_slice %x, %s, %n : (tensor<64xi32>, tensor<4xi32>, tensor<i32>) -> tensor<64xi32>
  return %y : tensor<64xi32>
}"""


CALLED = SLICE.replace("@main", "private @rows") + """
func.func @main(%n: tensor<i32>, %x: tensor<64xi32>) -> tensor<64xi32> {
  %y = func.call @rows(%n, %x) : (tensor<i32>, tensor<64xi32>) -> tensor<64xi32>
  return %y : tensor<64xi32>
}"""
DECIDES = CASE.replace("@main", "private @branch") + CALLED.split("}")[-2].replace("@rows", "@branch") + "}"


@pytest.mark.parametrize("text", [SLICE, CALLED])
def test_indices_are_drawn_on_both_sides_of_what_they_index(text: str) -> None:
    """So that clamping is executed; functions that are called are followed."""
    program = prepare(parse(text))
    assert (program.control_inputs().deciding, program.control_inputs().indexing) == (frozenset(), {0})
    drawn = [int(random_inputs(program, seed)[0][0]) for seed in range(40)]
    assert min(drawn) < 0 and 10 < max(drawn) < 24 and sum(0 <= n < 4 for n in drawn) >= 15


def test_unsigned_indices_are_not_negative() -> None:
    program = prepare(parse(SLICE.replace("%n: tensor<i32>", "%n: tensor<ui8>").replace(
        "tensor<64xi32>, tensor<i32>)", "tensor<64xi32>, tensor<ui8>)").replace(
        "tensor<4xi32>, tensor<i32>)", "tensor<4xi32>, tensor<ui8>)")))
    drawn = [int(random_inputs(program, seed)[0][0]) for seed in range(40)]
    assert min(drawn) >= 0 and 10 < max(drawn) < 24


@pytest.mark.parametrize("text", [LOOP, CASE, DECIDES])
def test_what_decides_is_small_and_the_rest_wraps(text: str) -> None:
    """A trip count and a branch are found; other integers come from the whole range of their type."""
    program = prepare(parse(text))
    assert program.control_inputs().deciding == {0}
    drawn = [random_inputs(program, seed)[0] for seed in range(8)]
    assert all(0 <= int(n) < 4 for n, _ in drawn)
    assert max(int(np.abs(x.astype(np.int64)).max()) for _, x in drawn) > 2**30


def test_what_reaches_a_decision_through_a_loop_counts() -> None:
    """An integer that is added to what a loop carries decides too when the condition reads that."""
    text = LOOP.replace("%i, %m :", "%i, %k :").replace(
        "    %p = ", "    %k = stablehlo.slice %v [0:1] : (tensor<64xi32>) -> tensor<1xi32>\n"
        "    %q = stablehlo.reshape %k : (tensor<1xi32>) -> tensor<i32>\n    %p = ").replace("%i, %k :", "%i, %q :")
    assert prepare(parse(text)).control_inputs().deciding == {1}


@pytest.mark.parametrize("kind", ["i4", "ui8", "i16", "ui32", "i64"])
def test_every_integer_type_is_drawn_whole(kind: str) -> None:
    """Both halves of the range, and small numbers."""
    text = f"func.func @main(%x: tensor<64x{kind}>) -> tensor<64x{kind}> {{ return %x : tensor<64x{kind}> }}"
    program = prepare(parse(text))
    values = np.concatenate([random_inputs(program, seed)[0][0] for seed in range(8)]).astype(np.float64)
    signed = not kind.startswith("u")
    width = int(kind.lstrip("ui"))
    assert values.min() < (-(2 ** (width - 2)) if signed else 4)
    assert values.max() > 2 ** (width - (2 if signed else 1))
    assert ((values >= 0) & (values < 4)).mean() > 0.3
