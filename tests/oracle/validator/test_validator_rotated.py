"""Rotated loops: what `rotate-collectives` makes is proved, and mistakes in it are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from generators.code_mutation import replace_source

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

GOLDEN = Path(__file__).resolve().parents[2] / "lit" / "passes" / "rotate-collectives" / "layers.mlir"
STREAMS = "hlorewrite.checks.translation_validation.program.rotated_streams"
COUNTERS = "hlorewrite.checks.translation_validation.program.last_iteration"
OTHER_OP = ("stablehlo.tanh %iterArg_3", "stablehlo.exponential %iterArg_3")
OTHER_OPERAND = ("%10 = stablehlo.negate %9", "%10 = stablehlo.negate %iterArg_3")
MISTAKES = {
    "no last reduction": ("return %6 :", "return %4#2 :"),
    "last reduction twice": ("stablehlo.add %4#2, %5", "stablehlo.add %5, %5"),
    "no first part": ("%iterArg_5 = %1)", "%iterArg_5 = %arg0)"),
    "first part of zeros": ("%iterArg_5 = %1)", "%iterArg_5 = %cst)"),
    "initial value": ("%iterArg_3 = %0,", "%iterArg_3 = %arg0,"),
    "initial sum": ("%iterArg_4 = %cst,", "%iterArg_4 = %0,"),
    "first number one less": ("%c_2 = stablehlo.constant dense<1>", "%c_2 = stablehlo.constant dense<0>"),
    "first number one more": ("%c_2 = stablehlo.constant dense<1>", "%c_2 = stablehlo.constant dense<2>"),
    "bound one less": ("constant dense<3> : tensor<i32>", "constant dense<2> : tensor<i32>"),
    "bound one more": ("constant dense<3> : tensor<i32>", "constant dense<4> : tensor<i32>"),
    "no iteration": ("constant dense<3> : tensor<i32>", "constant dense<0> : tensor<i32>"),
    "groups in the loop": ("handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>",
                           "handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"),
    "groups after the loop": ("handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>",
                              "handle = 2, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"),
    "another op": OTHER_OP,
    "another operand": OTHER_OPERAND,
}


def rotated() -> tuple[str, str]:
    """The golden file, before and after the pass; what is reduced is carried for the reduction alone."""
    original = GOLDEN.read_text().replace('%reduced = "stablehlo.all_reduce"(%gradient)',
                                          "%sent = stablehlo.negate %gradient : tensor<8xf32>\n"
                                          '      %reduced = "stablehlo.all_reduce"(%sent)')
    module = parse(original)
    assert run_passes(module, parse_pipeline("rotate-collectives"), PassContext(ignore_cost=True))
    return original, module.text()


def changed(old: str, new: str) -> str:
    """What the pass makes, with a mistake."""
    result = rotated()[1]
    assert result.count(old) == 1
    return result.replace(old, new)


@pytest.mark.parametrize("layers", [2, 3, 7])
def test_rotated_loops_are_proved(layers: int) -> None:
    """For any number of iterations that leaves a loop."""
    before, after = (parse(text.replace("dense<3>", f"dense<{layers}>")) for text in rotated())
    assert isinstance(validate(before, after), Proved)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_not_proved(name: str) -> None:
    """One change of what the pass makes: other values, and not proved."""
    before, after = parse(rotated()[0]), parse(changed(*MISTAKES[name]))
    assert not check(before, after).equal
    assert isinstance(validate(before, after), Unknown)


@pytest.mark.parametrize("layers", [0, 1])
def test_loops_that_run_less_often_are_not_proved(layers: int) -> None:
    """The first part of an iteration precedes the loop, so that there has to be one."""
    original, result = rotated()
    before = parse(original.replace("dense<3>", f"dense<{layers}>"))
    assert isinstance(validate(before, parse(result)), Unknown)


@pytest.mark.parametrize("old, new, mistake", [
    ("label == graph.labels[following]", "True", OTHER_OP),
    ("key = (depth, start, after)", "key = (depth, start, start)", OTHER_OPERAND),
])
def test_condition_is_needed(old: str, new: str, mistake: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the condition a mistake is called proved."""
    before, after = parse(rotated()[0]), parse(changed(*mistake))
    replace_source(STREAMS, old, new, monkeypatch)
    assert isinstance(validate(before, after), Proved)


WRAPPING = """
    %w0 = stablehlo.constant dense<START> : tensor<i8>
    %w1 = stablehlo.constant dense<60> : tensor<i8>
    %w2 = stablehlo.constant dense<BOUND> : tensor<i8>
    %w:2 = stablehlo.while(%wi = %w0, %wx = %OPERAND) : tensor<i8>, tensor<8xf32>
    cond {
      %wmore = stablehlo.compare LT, %wi, %w2 : (tensor<i8>, tensor<i8>) -> tensor<i1>
      stablehlo.return %wmore : tensor<i1>
    } do {
      %wnext = stablehlo.add %wi, %w1 : tensor<i8>
      %wy = stablehlo.cosine %wx : tensor<8xf32>
      stablehlo.return %wnext, %wy : tensor<i8>, tensor<8xf32>
    }
    return %w#1 : tensor<8xf32>"""


def test_a_counter_that_wraps_around_is_not_shifted(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 50 to 120 in steps of 60, numbers of 8 bits wrap around; from 0 to 70 they do not."""
    original, result = rotated()
    before = parse(original.replace("return %loop#2 : tensor<8xf32>", WRAPPING.replace("START", "50").replace(
        "BOUND", "120").replace("OPERAND", "loop#2")))
    after = parse(result.replace("return %6 : tensor<8xf32>", WRAPPING.replace("START", "0").replace(
        "BOUND", "70").replace("OPERAND", "6")))
    assert not check(before, after).equal
    assert isinstance(validate(before, after), Unknown)
    replace_source(COUNTERS, "    if max(bound - start + step, bound + step) > largest:", "    if False:", monkeypatch)
    assert isinstance(validate(before, after), Proved)
