"""Signatures tell values apart that have other numbers, and never values of one number."""

from __future__ import annotations

from pathlib import Path

import fusion_modules as m
import pytest

from hlorewrite.ir.load import load
from hlorewrite.ir.view import View
from hlorewrite.passes.common.value_numbers import ValueNumbers
from hlorewrite.passes.common.value_signatures import some_signatures_meet

T = "tensor<8xf32>"
LIT = Path(__file__).parents[2] / "lit" / "passes"
PROGRAMS = sorted(path for folder in ("collective-cse", "hoist-collectives", "comm-shift", "all-reduce-fusion")
                  for path in (LIT / folder).glob("*.mlir"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_values_of_one_number_have_one_signature(path: Path) -> None:
    """Calls are numbered by what they return, so programs with calls are never asked about."""
    view = View(load(str(path)))
    if view.ops("func.call"):
        pytest.skip("has calls")
    numbers = ValueNumbers(view)
    values = [value for function in view.ops("func.func") for block in function.regions[0].blocks
              for op in block.operations for value in op.results]
    for number in {numbers.of(value) for value in values}:
        equal = [value for value in values if numbers.of(value) == number]
        assert len(equal) < 2 or all(some_signatures_meet([equal[0], other]) for other in equal[1:])


def chain(length: int, last: str) -> list[str]:
    """Ops of one value, the first of them of some kind."""
    return [f"%{last}0 = stablehlo.{last} %a : {T}",
            *(f"%{last}{i + 1} = stablehlo.tanh %{last}{i} : {T}" for i in range(length))]


@pytest.mark.parametrize("length, meet", [(0, False), (3, False), (9, True)])
def test_a_few_ops_tell_values_apart(length: int, meet: bool) -> None:
    module = m.module(f"%a: {T}", f"({T}, {T})", *chain(length, "sine"), *chain(length, "cosine"),
                      f"return %sine{length}, %cosine{length} : {T}, {T}")
    returned = View(module).ops("func.return")[0].operands
    assert some_signatures_meet(returned) is meet


def test_constants_and_arguments_are_told_apart() -> None:
    module = m.module(f"%a: {T}, %b: {T}", f"({T}, {T}, {T}, {T})", f"%c = stablehlo.constant dense<1.0> : {T}",
                      f"%d = stablehlo.constant dense<2.0> : {T}", f"return %a, %b, %c, %d : {T}, {T}, {T}, {T}")
    assert not some_signatures_meet(View(module).ops("func.return")[0].operands)
