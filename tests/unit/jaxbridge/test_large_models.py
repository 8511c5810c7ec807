"""Small steps of bench/common/large_model_steps.py: what crosses replicas of sharded parameters, what budgets buy."""

from __future__ import annotations

import importlib.util

import pytest
from large_model_steps import LlamaStep, exported

from hlorewrite.cost.report.collectives import collectives_of
from hlorewrite.cost.report.report import Executed
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline.comparison import compared_modules
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import named_pipeline
from hlorewrite.passmanager.spec import parse_pipeline

MICRO_BATCHES = 4
SMALL = LlamaStep(layers=2, width=64, hidden=128, heads=4, kv_heads=2, vocab=512, length=16,
                  micro_batches=MICRO_BATCHES, replicas=2, shards=4)


WITH_GPU_COMPILER = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                       reason="the CUDA compiler is not installed (extra: aot)")


def rewritten(pipeline: str, budget: int | None = None, target: str = "") -> Module:
    module = parse(exported(SMALL), name="step")
    run_passes(module, parse_pipeline(pipeline), PassContext(topology="h200:2x4", target=target, memory_left=budget))
    return module


def across(module: Module) -> list[Executed]:
    """What a step sends between the two replicas (devices 0 to 3 and 4 to 7), but for scales of norms and the loss."""
    return [each for each in collectives_of(module)[1]
            if each.payload_bytes >= 1024 and any({d // 4 for d in row} == {0, 1} for row in each.groups)]


@pytest.mark.parametrize("target", ["", pytest.param("h200:2x4", marks=WITH_GPU_COMPILER)])
def test_gradients_cross_the_replicas_once_a_step_in_no_memory(target: str) -> None:
    """What is sent once is the float32 sum of bfloat16 gradients, so it is twice as large."""
    before = across(rewritten("expose-collectives", target=target))
    after = across(rewritten(f"expose-collectives,{named_pipeline('comm')}", budget=0, target=target))
    assert after and {each.trips for each in after} == {1}
    assert sum(each.executed_bytes for each in after) * MICRO_BATCHES <= 2 * sum(each.executed_bytes for each in before)
    assert {len(each.groups[0]) for each in after} == {2}


@WITH_GPU_COMPILER
def test_temporaries_may_grow_by_the_budget_and_by_no_more() -> None:
    """The step gathers and scatters once, which keeps whole parameters and gradients."""
    original = parse(exported(SMALL), name="step")
    made = original.clone()
    run_passes(made, parse_pipeline(f"expose-collectives,{named_pipeline('comm')}"),
               PassContext(topology="h200:2x4", target="h200:2x4", memory_left=1 << 30))
    granted, without = (compared_modules(original, made, "h200:2x4", budget=budget)
                        for budget in (1 << 30, 0))
    assert granted is not None and granted.kept and granted.ours.bytes < granted.alone.bytes
    assert without is not None and "of memory, and the memory budget allows" in without.against
