"""Steps of the other benches at sizes that the reference interpreter executes, before and after their passes."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

import gpt
import jax
import numpy as np
from fsdp_example import StackedModel, exported
from fsdp_step import exported_fsdp_step

from hlorewrite.checks.reference.inputs import random_inputs
from hlorewrite.checks.reference.program import Array, LockstepProgram, Outcome
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

Pair = tuple[str, Module, Module]
MOST_UPDATES = 1000
"""The step counter of an optimizer is drawn below this."""
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


def sharded_parameters() -> Iterator[Pair]:
    """The steps of ``memory_budget.py`` in bfloat16: gathers and scatters leave loops as far as budgets allow."""
    before = parse(exported("A", StackedModel(layers=2, width=16, hidden=32, micro_batches=4, rows=2, length=8)))
    for budget in (0, 1 << 12, 1 << 20):
        yield from rewritten(f"A within {budget} bytes", before, budget=budget)


def in_training(program: LockstepProgram, seed: int) -> tuple[list[list[Array]], Outcome]:
    """Inputs of a GPT step as a training has them, by the names of its arguments, and what it computes from them.

    The step counter is neither negative nor large, second moments are not negative, and tokens are in the vocabulary.
    With others the step has no value: ``sqrt`` of a negative moment is NaN, and ``beta ** count`` overflows.
    """
    cfg = replace(TINY, batch=1)
    names = jax.tree_util.tree_flatten_with_path(jax.eval_shape(functools.partial(gpt.init_state, cfg)))[0]
    rows = random_inputs(program, seed)
    for row in rows:
        assert len(row) == len(names) + 1
        for position, (path, _) in enumerate(names):
            if "count" in str(path):
                row[position] = row[position] % np.array(MOST_UPDATES, row[position].dtype)
            elif "square" in str(path):
                row[position] = np.abs(row[position])
        row[-1] = row[-1] % np.array(cfg.vocab, row[-1].dtype)
    return rows, program.run(rows)


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
    path = Path(__file__).resolve().parents[2] / "tests" / "unit" / "pipelines" / "pipeline_steps.py"
    found = importlib.util.spec_from_file_location("steps_of_tests", path)
    assert found is not None and found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


jax.config.update("jax_platforms", "cpu")
