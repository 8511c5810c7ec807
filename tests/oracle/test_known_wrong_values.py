"""Programs whose values version 0.1.0 changed, or that made it crash or write a module that does not verify.

Each file in ``wrong_in_0_1_0`` says in its first line what is special about it. A rewrite may move what it holds or
leave it alone; either way all devices must compute what they did before.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hlorewrite.checks.reference.check import compare
from hlorewrite.checks.reference.inputs import random_inputs
from hlorewrite.checks.reference.program import prepare
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.passmanager.spec import parse_pipeline

FILES = sorted((Path(__file__).resolve().parent / "wrong_in_0_1_0").glob("*.mlir"))
ALONE = ("comm-shift", "rules", "collective-cse")


@pytest.mark.parametrize("pipeline", [*ALONE, PIPELINES["comm"]], ids=[*ALONE, "comm"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_values_stay(file: Path, pipeline: str) -> None:
    """The reference interpreter computes the same from the original and the rewritten module."""
    before = parse(file.read_text("utf-8"))
    after = before.clone()
    run_passes(after, parse_pipeline(pipeline), PassContext())
    original = prepare(before, "main")
    rewritten = prepare(after, "main", like=original)
    for seed in range(6):
        inputs = random_inputs(original, seed)
        report = compare(original.run(inputs), rewritten.run(inputs), "main")
        assert report.equal, report.table()
