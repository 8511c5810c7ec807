"""Counterexamples: inputs at borders, equal and cancelling ones, and the same ones for the same seed."""

from __future__ import annotations

import numpy as np

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.reference.program import prepare
from hlorewrite.checks.reference.refute import DRAWS, _tolerance, drawn_inputs, refute
from hlorewrite.checks.reference.refute_worker import refute_in_subprocess
from hlorewrite.ir.load import parse

SLICE = """func.func @main(%x: tensor<100xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %r = stablehlo.dynamic_slice %x, %i, sizes = [4] : (tensor<100xf32>, tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""
WRONG_CLAMP = """func.func @main(%x: tensor<100xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<95> : tensor<i32>
  %m = stablehlo.minimum %i, %c : tensor<i32>
  %r = stablehlo.dynamic_slice %x, %m, sizes = [4] : (tensor<100xf32>, tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""
LOOP = """func.func @main(%x: tensor<f32>, %n: tensor<i32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %z, %v = %x) : tensor<i32>, tensor<f32>
  cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
         stablehlo.return %p : tensor<i1> }
  do { %one = stablehlo.constant dense<1> : tensor<i32>
       %j = stablehlo.add %i, %one : tensor<i32>
       %w = stablehlo.add %v, %v : tensor<f32>
       stablehlo.return %j, %w : tensor<i32>, tensor<f32> }
  return %r#1 : tensor<f32>
}"""


def test_an_index_at_the_border_of_a_large_dimension():
    found = refute(parse(SLICE), parse(WRONG_CLAMP))
    assert found.example is not None
    assert found.example.kind in ("borders", "past borders")


def test_a_loop_that_runs_at_least_once():
    at_least_once = LOOP.replace("%r:2", "%one0 = stablehlo.constant dense<1> : tensor<i32>\n"
                                 "  %m = stablehlo.maximum %n, %one0 : tensor<i32>\n  %r:2").replace("%i, %n", "%i, %m")
    found = refute(parse(LOOP), parse(at_least_once))
    assert found.example is not None
    assert found.example.kind == "counts of 0"


def test_equal_numbers_show_another_comparison():
    text = """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi1> {
      %r = stablehlo.compare LT, %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      return %r : tensor<4xi1> }"""
    found = refute(parse(text), parse(text.replace("LT", "LE")))
    assert found.example is not None
    assert found.example.kind in ("few values", *[kind for kind in DRAWS if kind.startswith("counts")])


def test_the_same_seed_gives_the_same_inputs():
    program = prepare(parse(SLICE))
    for draw in range(len(DRAWS)):
        first, again = (drawn_inputs(program, 5, draw) for _ in range(2))
        assert all((a == b).all() for x, y in zip(first, again, strict=True) for a, b in zip(x, y, strict=True))
    five, six = (drawn_inputs(program, seed, 0)[0] for seed in (5, 6))
    assert any((a != b).any() for a, b in zip(five, six, strict=True))


def test_indices_reach_borders_and_beyond():
    program = prepare(parse(SLICE))
    drawn = {int(drawn_inputs(program, seed, 1)[0][1]) for seed in range(200)}
    assert {-1, 0, 99, 100} <= drawn
    few = {int(drawn_inputs(program, seed, 2)[0][1]) for seed in range(200)}
    assert {np.iinfo(np.int32).min, np.iinfo(np.int32).max} & few


def test_equal_modules_in_a_process_of_their_own():
    found = refute_in_subprocess(parse(SLICE), parse(SLICE.replace("%r", "%s")), draws=3)
    assert (found.example, found.reason, found.equal) == (None, "", 3)


def test_a_comparison_of_truth_values():
    module = parse("""func.func @main(%a: tensor<i1>, %b: tensor<i1>, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.compare NE, %a, %b : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %1 = stablehlo.select %0, %x, %y : tensor<i1>, tensor<f32>
      return %1 : tensor<f32> }""")
    assert check(module, module).equal
    assert not check(module, parse(module.text().replace("NE", "EQ"))).equal


def test_without_a_bound_the_narrowest_floats_say_what_is_rounding():
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %n = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xELEMENT>
      %r = stablehlo.convert %n : (tensor<4xELEMENT>) -> tensor<4xf32>
      return %r : tensor<4xf32> }"""
    narrow, wide = (_tolerance(prepare(parse(text.replace("ELEMENT", element)))) for element in ("bf16", "f32"))
    assert narrow > 100 * wide
