"""The validator over train steps that JAX lowers: the GPT example and the accumulation loops of the benchmark."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hlorewrite.checks.translation_validation.steps import PassStages
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

ROOT = Path(__file__).resolve().parents[3]
LOSSY = "bf16 psum, f32 acc, wire-dtype=bf16"
"""Sent in a narrower type, as asked for: the one case that is unknown."""


def script(folder: str, name: str) -> ModuleType:
    """A script of the repository as a module."""
    sys.path.insert(0, str(ROOT / folder))
    try:
        spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(ROOT / folder))


@pytest.mark.parametrize("pipeline", ["comm-shift", "comm-shift,rules,all-reduce-fusion,collective-cse", "comm"])
def test_gpt(pipeline: str) -> None:
    """A micro-batched GPT step with AdamW is proved."""
    gpt = script("examples", "gpt")
    before = parse(gpt.export_step(gpt.SIZES["tiny"]))
    after = before.clone()
    assert run_passes(after, parse_pipeline(pipeline), PassContext(topology="h200:1x8"))
    assert str(validate(before, after)) == "proved"


@pytest.mark.parametrize("budget", [1 << 12, 1 << 20], ids=["some", "all"])
def test_sharded_parameters(budget: int) -> None:
    """Gathered once, and scattered once from the sums that layer loops add to row by row: proved pass by pass."""
    fsdp = script("bench/common", "fsdp_example")
    model = fsdp.StackedModel(layers=3, width=16, hidden=32, micro_batches=4, rows=2, length=8)
    before = parse(fsdp.exported("A", model))
    after, stages = before.clone(), PassStages()
    context = PassContext(topology="h200:1x8", memory_left=budget)
    assert run_passes(after, parse_pipeline("comm"), context, observers=[stages])
    assert str(stages.validate(before, after)) == "proved"


def test_accumulation_loops() -> None:
    """Every loop of the benchmark is proved, but for one that rounds on purpose."""
    bench = script("bench/passes", "comm_shift")
    for case in sys.modules["comm_shift_cases"].CASES:
        before = bench.exported(case)
        after, _ = bench.shifted(before, case)
        assert (str(validate(before, after)) == "proved") == (case.name != LOSSY), case.name
