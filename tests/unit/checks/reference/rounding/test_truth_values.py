"""Ops of truth values and narrow integers after values that rounding may change."""

from __future__ import annotations

import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module

SUMS = ("%s = stablehlo.add %x, %y : tensor<8xf32> %t = stablehlo.add %s, %z : tensor<8xf32>",
        "%s = stablehlo.add %y, %z : tensor<8xf32> %t = stablehlo.add %x, %s : tensor<8xf32>")
TRUTH = ("%k = stablehlo.constant dense<0.1> : tensor<8xf32> "
         "%c = stablehlo.compare GT, %t, %k : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>")
AFTER = {
    **{f"compare {way}": f"%r = stablehlo.compare {way}, %c, %w : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>"
       for way in ("EQ", "NE", "LT", "GE")},
    "select": "%r = stablehlo.select %c, %w, %c : tensor<8xi1>, tensor<8xi1>",
    "to ui4 and back": "%a = stablehlo.convert %t : (tensor<8xf32>) -> tensor<8xi4> "
                       "%b = stablehlo.convert %a : (tensor<8xi4>) -> tensor<8xui4> "
                       "%r = stablehlo.convert %b : (tensor<8xui4>) -> tensor<8xi1>",
}


def program(order: int, after: str) -> Module:
    return parse("func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>, %w: tensor<8xi1>) -> "
                 f"tensor<8xi1> {{ {SUMS[order]} {TRUTH} {AFTER[after]} return %r : tensor<8xi1> }}")


@pytest.mark.parametrize("after", AFTER)
def test_sums_in_another_order_are_equal(after: str) -> None:
    assert check(program(0, after), program(1, after)).equal


@pytest.mark.parametrize("after", [name for name in AFTER if name != "to ui4 and back"])
def test_another_predicate_is_not(after: str) -> None:
    other = program(1, after).text().replace("GT", "LT")
    assert not check(program(0, after), parse(other)).equal
