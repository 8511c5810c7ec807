"""Programs whose values version 0.1.0 changed, or that it turned into a module that does not verify.

Each file in ``wrong_in_0_1_0`` says in its first line what is special about it. A rewrite may move what it holds or
leave it alone; either way all devices must compute what they did before.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hlorewrite.ir.load import parse
from hlorewrite.oracle.compare import compare
from hlorewrite.oracle.inputs import random_inputs
from hlorewrite.oracle.program import Array, LockstepProgram, prepare
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.passmanager.spec import parse_pipeline

FILES = sorted((Path(__file__).resolve().parent / "wrong_in_0_1_0").glob("*.mlir"))
ALONE = ("comm-shift", "rules", "collective-cse")


def inputs_that_wrap(program: LockstepProgram, seed: int) -> list[list[Array]]:
    """Inputs of each process; integers of 8 bits over their whole range, so that sums wrap around."""
    generator = np.random.default_rng(seed)
    return [[generator.integers(-128, 128, value.shape).astype(np.int8) if value.dtype == np.int8 else value
             for value in row] for row in random_inputs(program, seed)]


@pytest.mark.parametrize("pipeline", [*ALONE, PIPELINES["comm"]], ids=[*ALONE, "comm"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_values_stay(file: Path, pipeline: str) -> None:
    """The reference interpreter computes the same from the original and the rewritten module."""
    before = parse(file.read_text("utf-8"))
    after = before.clone()
    run_passes(after, parse_pipeline(pipeline), PassContext())
    original, rewritten = prepare(before, "main"), prepare(after, "main")
    for seed in range(3):
        inputs = inputs_that_wrap(original, seed)
        report = compare(original.run(inputs), rewritten.run(inputs), "main")
        assert report.equal, report.table()
