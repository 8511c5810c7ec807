"""Accumulations in f16, bf16 and 8-bit floats: what is finite stays finite, and what is not zero stays so."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from generators.structure.random_ranges import RangeCase, random_ranges

from hlorewrite.checks.reference.program import Outcome, prepare
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

PROGRAMS = 2000 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 120
PIPELINES = ("comm", "comm-shift", "rules", "comm-shift,rules", "time")


def left_range(case: RangeCase, pipeline: str) -> tuple[bool, str]:
    """Whether a pipeline changes a program, and what it then computes beyond the range that the original keeps to."""
    before = parse(case.text)
    after = before.clone()
    if not run_passes(after, parse_pipeline(pipeline), PassContext(ignore_cost=True)):
        return False, ""
    original = prepare(before, "main")
    expected = _numbers(original.run(case.inputs))
    actual = _numbers(prepare(after, "main", like=original).run(case.inputs))
    if (np.isfinite(expected) & ~np.isfinite(actual)).any():
        return True, f"{case.kind}: {expected} became {actual}"
    return True, f"{case.kind}: {expected} vanished" if ((expected != 0) & (actual == 0)).any() else ""


def _numbers(outcome: Outcome) -> np.ndarray:
    return np.array([np.asarray(value, np.float64) for row in outcome.outputs for value in row])


@pytest.mark.parametrize("block", range(2))
def test_random_ranges(block: int) -> None:
    """By default no rewriting leaves the range of a narrow type."""
    changed = 0
    for seed in range(block, PROGRAMS, 2):
        moved, fault = left_range(random_ranges(random.Random(seed)), PIPELINES[seed // 2 % len(PIPELINES)])
        assert not fault, f"seed {seed}: {fault}"
        changed += moved
    assert changed > PROGRAMS // 16


def test_the_inputs_show_what_the_condition_is_for() -> None:
    """With narrow-range, some sums overflow and others vanish."""
    faults = [fault for seed in range(60) if (fault := left_range(random_ranges(random.Random(seed)),
                                                                    "comm-shift{narrow-range=true}")[1])]
    assert any("vanished" in fault for fault in faults) and any("became" in fault for fault in faults)
