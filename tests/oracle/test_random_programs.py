"""Random SPMD programs through the passes: every device computes what it did, or nothing changed at all.

300 programs in the default run; ``HLOREWRITE_NIGHTLY=1`` or the hypothesis profile ``nightly`` runs 10 000.
"""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from generators.random_programs import random_program
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hlorewrite.errors import InputError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.oracle.compare import compare
from hlorewrite.oracle.inputs import random_inputs
from hlorewrite.oracle.program import Outcome, prepare
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

NIGHTLY = os.environ.get("HLOREWRITE_NIGHTLY") == "1" or os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
PROGRAMS = 10_000 if NIGHTLY else 300
SHRUNK = PROGRAMS // 5  # drawn one decision at a time: hypothesis reduces these when they fail
PIPELINES = ("comm-shift", "comm-shift", "inline,comm-shift", "comm-shift,rules", "rules,comm-shift",
             "comm-shift{memory-budget=1GiB}", "comm-shift{exact}", "comm-shift,canonicalize,cse",
             "comm-shift{memory-budget=1GiB},all-reduce-fusion,collective-cse", "inline,hoist-collectives,comm-shift",
             "reduce-scatter-creation,masked-sum-to-broadcast,gather-to-broadcast,permutes-to-broadcast",
             "legalize-for-cpu,comm-shift")
# Sums in another order, over up to 8 devices and 4 nested iterations, after products that may cancel.
TOLERANCE, BFLOAT_TOLERANCE = 1e-4, 0.3


class Drawn:
    """Decisions from hypothesis, so that a failing program is reduced decision by decision."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def randrange(self, stop: int, /) -> int:
        """A number below ``stop``."""
        return self.data.draw(st.integers(0, stop - 1))


def finite(outcome: Outcome) -> bool:
    """Whether no product ran over; sums in another order could then differ without a fault."""
    return all(np.isfinite(value if value.dtype.kind == "c" else value.astype(np.float64)).all()
               for row in outcome.outputs for value in row)


def rewritten(before: Module, pipeline: str) -> tuple[Module, bool]:
    """A module after a pipeline, and whether any pass says that it changed; the manager verifies after each."""
    after = before.clone()
    return after, run_passes(after, parse_pipeline(pipeline), PassContext())


def check_one(text: str, pipeline: str, input_seed: int) -> bool:
    """Checks one program; returns whether it changed."""
    before = parse(text)
    try:
        after, changed = rewritten(before, pipeline)
    except InputError as error:  # XLA:CPU runs no collective_broadcast, and replicas of partitions have no other form.
        assert "collective_broadcast of several replicas" in str(error)
        return False
    assert after.operation.verify()
    if not changed:
        assert str(after.mlir) == str(before.mlir)
        return False
    original = prepare(before, "main")
    program = prepare(after, "main", like=original)
    inputs = random_inputs(original, input_seed)
    expected = original.run(inputs)
    assert not expected.diverged, "the generator wrote a program that hangs"
    if finite(expected):
        report = compare(expected, program.run(inputs), "main", BFLOAT_TOLERANCE if "bf16" in text else TOLERANCE)
        assert report.equal, f"{pipeline}, inputs of seed {input_seed}:\n{report.table()}{report.problems}\n{text}"
    return True


@seed(7)
@settings(max_examples=SHRUNK, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example])
@given(st.data(), st.sampled_from(PIPELINES))
def test_drawn_programs(data: st.DataObject, pipeline: str) -> None:
    """Programs drawn decision by decision."""
    check_one(random_program(Drawn(data)), pipeline, 0)


@pytest.mark.parametrize("block", range(12))
def test_seeded_programs(block: int) -> None:
    """Programs from seeds; most of them change, or this test would say little."""
    count = (PROGRAMS - SHRUNK) // 12
    changed = sum(check_one(random_program(random.Random(number)), PIPELINES[number % len(PIPELINES)], number)
                  for number in range(block * count, (block + 1) * count))
    assert changed > count // 4
