"""A run of passes proved pass by pass, where no normal form proves it as a whole."""

from __future__ import annotations

import pytest

from hlorewrite.checks.translation_validation import validate as validator
from hlorewrite.checks.translation_validation.steps import PASS_BY_PASS, PassStages
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

TEXT = ("func.func @main(%x: tensor<f32>) -> tensor<f32> { %y = stablehlo.add %x, %x : tensor<f32> "
        "return %y : tensor<f32> }")
STEPS = (TEXT, TEXT.replace("add", "multiply"), TEXT.replace("add", "subtract"))


def stages_of(*modules: Module) -> PassStages:
    """What passes called 1, 2, ... made."""
    stages = PassStages()
    for number, module in enumerate(modules):
        stages.before("", module)
        stages.after(number, module, number > 0)
    return stages


def answers(monkeypatch: pytest.MonkeyPatch, refused: set[tuple[str, str]]) -> None:
    """A validator that proves all pairs of programs but some."""
    def validate(before: Module, after: Module) -> Proved | Unknown:
        pair = tuple(next(name for name in ("add", "multiply", "subtract") if name in each.text())
                     for each in (before, after))
        return Unknown("a difference") if pair in refused else Proved("some form", 10)
    monkeypatch.setattr(validator, "validate", validate)


def test_two_proofs_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [parse(text) for text in STEPS]
    answers(monkeypatch, {("add", "subtract")})
    assert stages_of(*modules).validate(modules[0], modules[2]) == Proved(PASS_BY_PASS, 20)


@pytest.mark.parametrize("refused, name", [(("add", "multiply"), "1"), (("multiply", "subtract"), "2")])
def test_every_pass_has_to_be_proved(refused: tuple[str, str], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [parse(text) for text in STEPS]
    answers(monkeypatch, {("add", "subtract"), refused})
    assert stages_of(*modules).validate(modules[0], modules[2]) == Unknown(f"{name}: a difference")


def test_what_is_proved_as_a_whole_is_not_proved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [parse(text) for text in STEPS]
    answers(monkeypatch, {("add", "multiply")})
    assert stages_of(*modules).validate(modules[0], modules[2]) == Proved("some form", 10)


@pytest.mark.parametrize("end", [0, 2])
def test_the_passes_have_to_lead_from_one_to_the_other(end: int) -> None:
    """What becomes of the module before or after the passes is proved with the whole."""
    same = [parse(TEXT), parse(TEXT.replace("%y", "%z")), parse(TEXT)]
    other = parse(STEPS[1])
    ends = [other if end == 0 else same[0], other if end == 2 else same[2]]
    assert isinstance(stages_of(*same).validate(*ends), Unknown)


def test_one_pass_has_no_parts() -> None:
    modules = [parse(text) for text in STEPS[:2]]
    answer = stages_of(*modules).validate(*modules)
    assert isinstance(answer, Unknown) and not answer.reason.startswith("1: ")


def test_passes_that_change_nothing_are_no_step() -> None:
    module, stages = parse(TEXT), PassStages()
    original = module.clone()
    run_passes(module, parse_pipeline("cse,comm-shift"), PassContext(), observers=[stages])
    assert isinstance(stages.validate(original, module), Proved)
    answer = stages.validate(original, parse(STEPS[1]))
    assert isinstance(answer, Unknown) and answer.reason.startswith("output 0")
