"""The passes that move communication beside compute change nothing the second time, and comm-shift keeps what they
made."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from generators.golden_cases import LIT
from generators.random_layers import random_layers

from hlorewrite.cli.opt.job import split_text
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.collectives import COLLECTIVES
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, nested_ops
from hlorewrite.passes.common.overlap_model import OVERLAPPED
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import named_pipeline
from hlorewrite.passmanager.spec import parse_pipeline

PIPELINES = {"peel": "peel-last-micro-batch", "peel for sinking": "peel-last-micro-batch{sunk=true}",
             "sink": "sink-reductions", "rotate": "rotate-collectives",
             "rotate outer": "rotate-collectives{outer=true}", "time": named_pipeline("time")}
SEEDS = 24
MOVES_ON = "passes/gather-once/stack-of-layers.mlir:1"
"""The gather of the first layer, which rotation puts before the layer loop, reads what the loop around does not change:
the second run of ``time`` begins with comm-shift, which gathers it once."""


def ran(module: Module, pipeline: str) -> bool:
    """Runs a pipeline on a module; returns whether it says that it changed something."""
    return run_passes(module, parse_pipeline(pipeline), PassContext(ignore_cost=True, topology="h200:1x8"))


def golden_modules() -> Iterator[tuple[str, Module]]:
    """The modules of all golden files that contain a loop."""
    for path in sorted(LIT.rglob("*.mlir")):
        for line, part in split_text(path.read_text("utf-8", "replace")):
            if "stablehlo.while" not in part:
                continue
            try:
                yield f"{path.relative_to(LIT)}:{line}", parse(part)
            except HlorewriteError:
                continue  # a golden file of a message about the text


@pytest.mark.parametrize("name", PIPELINES)
def test_golden_files(name: str) -> None:
    changed = [differs_twice(where, module, name) for where, module in golden_modules()
               if (name, where) != ("time", MOVES_ON)]
    assert any(changed)


@pytest.mark.parametrize("name", [name for name in PIPELINES if name != "time"])
def test_random_loops(name: str) -> None:
    changed = [differs_twice(f"seed {seed}", parse(random_layers(random.Random(seed))), name) for seed in range(SEEDS)]
    assert sum(changed) >= 2


def differs_twice(where: str, module: Module, name: str) -> bool:
    """Whether the first run changes a module; the second must not."""
    once = module.clone()
    ran(once, PIPELINES[name])
    text = once.text()
    assert not ran(once, PIPELINES[name]) and once.text() == text, f"{name} changes {where} again"
    return text != module.text()


def beside_compute(module: Module) -> int:
    """How many collectives stand in loops where compute hides them."""
    loops = [op for op in View(module).ops("stablehlo.while") if OVERLAPPED in op.attributes]
    return sum(inner.name in COLLECTIVES for op in loops for inner in nested_ops(op))


@pytest.mark.parametrize("name", ["sink", "rotate", "rotate outer"])
def test_comm_shift_keeps_them(name: str) -> None:
    kept = 0
    for where, module in golden_modules():
        ran(module, f"comm-shift,{PIPELINES[name]}")
        before = beside_compute(module)
        ran(module, "comm-shift")
        assert beside_compute(module) == before, where
        kept += before
    assert kept
