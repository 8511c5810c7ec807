"""Constraints that a step lacks: named with their line and bytes where they save some, and nowhere else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from large_model_steps import LlamaStep, exported

from hlorewrite.cli import lint
from hlorewrite.cli.parser import Parser
from hlorewrite.cost.report.collectives import collectives_of
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.baseline import constraint_advice as advice
from hlorewrite.jaxbridge.xla.partition import expose_collectives
from hlorewrite.util.sizes import format_bytes

SMALL = LlamaStep(layers=2, width=64, hidden=128, heads=4, kv_heads=2, vocab=512, length=16, micro_batches=2)


def test_of_a_step_without_constraints_the_line_is_named_and_what_one_saves() -> None:
    module = parse(exported(replace(SMALL, constrained=False)), name="step")
    text = module.text()
    found = advice.constraint_advice(module)
    assert module.text() == text
    assert found and all("large_model_steps.py" in each.source for each in found)
    sent = sum(each.executed_bytes for each in collectives_of(expose_collectives(module))[1])
    best = found[0]
    assert best.before == sent and best.after < sent * (1 - advice.LEAST_SHARE) and "fsdp" in best.spec
    assert f"would save {format_bytes(best.before - best.after, 1)} of the {format_bytes(sent, 1)}" in str(best)


def test_a_step_with_constraints_lacks_none() -> None:
    assert advice.constraint_advice(parse(exported(SMALL), name="step")) == []


def test_a_partitioned_step_is_left_alone() -> None:
    module = expose_collectives(parse(exported(replace(SMALL, constrained=False)), name="step"))
    assert advice.constraint_advice(module) == []


def test_lint_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = tmp_path / "step.export"
    step.write_bytes(exported(replace(SMALL, constrained=False)))
    parser = Parser()
    lint.add_arguments(parser)
    assert lint.run(parser.parse_args([str(step)])) == 0
    assert "jax.lax.with_sharding_constraint(x, P(" in capsys.readouterr().out
    lint.run(parser.parse_args([str(step), "--json"]))
    (best, *_) = json.loads(capsys.readouterr().out)["constraints"]
    assert best["after"] < best["before"]


def test_small_savings_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "LEAST_SHARE", 1.0)
    assert advice.constraint_advice(parse(exported(replace(SMALL, constrained=False)), name="step")) == []
