"""Random counted loops through the passes that move communication concurrently with compute: equal values, never more
bytes."""

from __future__ import annotations

import os
import random

import pytest
from generators.check import BESIDE_COMPUTE, checked
from generators.random_layers import random_layers

PROGRAMS = 2000 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 32
PIPELINES = ("peel-last-micro-batch,sink-reductions,rotate-collectives{outer=true}",
             "rotate-collectives{outer=true},peel-last-micro-batch,sink-reductions", BESIDE_COMPUTE)


@pytest.mark.parametrize("block", range(4))
def test_random_layers(block: int) -> None:
    """Most programs change; the interpreter runs both."""
    changed = 0
    for seed in range(block, PROGRAMS, 4):
        for what in checked(random_layers(random.Random(seed)), PIPELINES, seed):
            assert what.finding is None, f"seed {seed}: {what.finding}"
            changed += what.changed
    assert changed > PROGRAMS // 4


@pytest.mark.parametrize("block", range(2))
def test_counts_at_run_time(block: int) -> None:
    """Outermost loops run as often as an argument says, from not at all to three times."""
    changed = 0
    for seed in range(block, 2 * PROGRAMS, 2):
        text = random_layers(random.Random(seed), at_run_time=True)
        for what in checked(text, ("peel-last-micro-batch", BESIDE_COMPUTE), seed):
            assert what.finding is None, f"seed {seed}: {what.finding}"
            changed += what.changed
    assert changed > PROGRAMS // 8
