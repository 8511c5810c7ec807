"""Steps of the other benches at sizes that the reference interpreter executes, before and after their passes."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

import gpt
import jax
from fsdp_step import exported_fsdp_step

from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

Pair = tuple[str, Module, Module]
TINY = gpt.GptConfig(vocab=16, layers=2, heads=2, width=8, seq=4, batch=1, micro_batches=3)


def rewritten(name: str, before: Module, pipeline: str = "comm", budget: int | None = None) -> Iterator[Pair]:
    """The pair, where the passes change the program."""
    after = before.clone()
    if run_passes(after, parse_pipeline(pipeline), PassContext(memory_left=budget)):
        yield name, before, after


def gpt_steps() -> Iterator[Pair]:
    """GPT steps with AdamW: data-parallel, and with parameters gathered by hand, without and with a memory budget."""
    for devices in (2, 4):
        yield from rewritten(f"dp {devices}", parse(gpt.export_step(replace(TINY, batch=devices), devices)))
        for budget in (None, 1 << 30):
            yield from rewritten(f"fsdp {devices}, budget {budget}", parse(exported_fsdp_step(TINY, devices)),
                                 budget=budget)


def pipelines() -> Iterator[Pair]:
    """Steps with stage marks, unsplit and as programs of several meshes under each schedule."""
    steps = _steps_of_tests()
    for stages, meshes in ((2, "(2),(2)"), (4, "(2),(2),(2),(2)")):
        args = (steps.weights(stages), *steps.batch())
        step = steps.train_step(steps.mlp_loss)
        for schedule in ("gpipe", "1f1b", "eager-1f1b", "zb-h1"):
            before = steps.lowered(step, args, locations=False)
            yield f"{stages} stages {schedule}", before, steps.split(step, args, meshes, schedule, locations=False)


def _steps_of_tests() -> Any:
    """The steps with stage marks of the tests, in a file that is named as one of the benches."""
    path = Path(__file__).resolve().parent.parent / "tests" / "unit" / "jaxbridge" / "pipeline_steps.py"
    found = importlib.util.spec_from_file_location("steps_of_tests", path)
    assert found is not None and found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


jax.config.update("jax_platforms", "cpu")
