"""Tolerances of outputs without a bound: those of the roughest float type they are computed in."""

from __future__ import annotations

import numpy as np
import pytest

from hlorewrite.checks.reference.rounding.bounds import RoundingBounds
from hlorewrite.checks.reference.rounding.summation_order import computed_tolerances
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.xla.execute import Value, compare_output

F, B = "tensor<4xf32>", "tensor<4xbf16>"
DOWN, UP = f"({F}) -> {B}", f"({B}) -> {F}"
ROUGH = f"%n = stablehlo.convert %x : {DOWN} %m = stablehlo.multiply %n, %n : {B} %r = stablehlo.convert %m : {UP} "
PREDICATE = '%p = stablehlo.constant dense<true> : tensor<i1> %o = "stablehlo.if"(%p)'
OTHERWISE = f"{{ stablehlo.return %x : {F} }}) : (tensor<i1>) -> {F}"


def function(body: str, more: str = "") -> str:
    return f"func.func @main(%x: {F}, %h: {B}) -> {F} {{ {body} }} {more}"


@pytest.mark.parametrize("text, expected", [
    (function(f"%r = stablehlo.add %x, %x : {F} return %r : {F}"), 1e-5),
    (function(f"{ROUGH} return %r : {F}"), 4e-2),
    (function(f"{ROUGH} %s = stablehlo.add %r, %x : {F} return %s : {F}"), 4e-2),
    (function(f"{ROUGH} %s = stablehlo.add %x, %x : {F} return %s : {F}"), 1e-5),
    (function(f"%v = stablehlo.reverse %h, dims = [0] : {B} %r = stablehlo.convert %v : {UP} return %r : {F}"), 1e-5),
    (function(f"%r = func.call @half(%x) : ({F}) -> {F} return %r : {F}",
              f"func.func private @half(%x: {F}) -> {F} {{ {ROUGH} return %r : {F} }}"), 4e-2),
    (function(f"{PREDICATE} ({{ {ROUGH} stablehlo.return %r : {F} }}, {OTHERWISE} return %o : {F}"), 4e-2),
    (function(f"{ROUGH} {PREDICATE} ({{ stablehlo.return %r : {F} }}, {OTHERWISE} return %o : {F}"), 4e-2),
], ids=["float32", "bfloat16 between", "added", "beside", "moved only", "called", "in a branch", "captured"])
def test_the_roughest_type_counts(text: str, expected: float) -> None:
    assert computed_tolerances(parse(text)) == (expected,)


def test_it_counts_where_there_is_no_bound() -> None:
    value = Value("loss", (2,), "f32", "")
    before, after = [np.float32([1, 2])], [np.float32([1, 2.02])]
    known = RoundingBounds(reason="too large", tolerances=(4e-2,))
    assert not compare_output(value, before, after, rounding=RoundingBounds(reason="too large")).equal
    assert compare_output(value, before, after, rounding=known).equal
    assert not compare_output(value, before, after, 1e-5, rounding=known).equal
    assert not compare_output(value, before, [np.float32([1, 2.1])], rounding=known).equal
