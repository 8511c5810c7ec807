"""Reductions of rows in the loop that stacks them: what `sink-reductions` makes is proved, mistakes in it are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

GOLDEN = Path(__file__).resolve().parents[2] / "lit" / "passes" / "sink-reductions" / "layers.mlir"
MISTAKES = {
    "groups": ("dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>", "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"),
    "initial value": ("%arg0, %iterArg_3 = %arg1", "%arg0, %iterArg_3 = %cst"),
    "one iteration too few": ("constant dense<3> : tensor<i32>", "constant dense<2> : tensor<i32>"),
    "no iteration": ("constant dense<3> : tensor<i32>", "constant dense<0> : tensor<i32>"),
    "one iteration too many": ("constant dense<3> : tensor<i32>", "constant dense<4> : tensor<i32>"),
    "first index": ("while(%iterArg = %c,", "while(%iterArg = %c_0,"),
    "row that is read": ("dynamic_slice %iterArg_3, %iterArg,", "dynamic_slice %iterArg_3, %c_0,"),
    "row that is written": (
        "dynamic_update_slice %iterArg_3, %5, %iterArg,", "dynamic_update_slice %iterArg_3, %5, %c_0,"),
    "reduction after the row": ("dynamic_update_slice %iterArg_3, %5,", "dynamic_update_slice %iterArg_3, %4,"),
    "reduction of the new row alone": ('"stablehlo.all_reduce"(%4)', '"stablehlo.all_reduce"(%2)'),
    "reduction of the old row alone": ('"stablehlo.all_reduce"(%4)', '"stablehlo.all_reduce"(%3)'),
    "kind of reduction": ("stablehlo.add %arg2, %arg3", "stablehlo.maximum %arg2, %arg3"),
}


def sunk() -> tuple[str, str]:
    """The first module of the golden file, before and after the pass."""
    original = GOLDEN.read_text().split("// -----")[0]
    module = parse(original)
    assert run_passes(module, parse_pipeline("sink-reductions"), PassContext(ignore_cost=True))
    return original, module.text()


def test_reductions_in_the_loop_are_proved() -> None:
    """The sums of earlier micro-batches are the rows that the loop starts with."""
    original, result = sunk()
    assert isinstance(validate(parse(original), parse(result)), Proved)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_not_proved(name: str) -> None:
    """One change of what the pass makes: other values, and not proved."""
    original, result = sunk()
    old, new = MISTAKES[name]
    assert result.count(old) == 1
    before, after = parse(original), parse(result.replace(old, new))
    assert not check(before, after).equal
    assert isinstance(validate(before, after), Unknown)
