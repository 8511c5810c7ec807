"""No element of a random program differs by more than its bound, and bounds are near the largest difference seen."""

from __future__ import annotations

import os

import pytest
from generators.rounding_trials import at_random, layers

PROGRAMS = 5000 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 120
FAR = 100.0
"""A bound above so many times the largest difference says little."""


@pytest.mark.parametrize("block", range(4))
def test_random_programs_stay_within_their_bounds(block: int) -> None:
    """Each in one pipeline; most outputs are equal bit for bit, which their fingerprints say."""
    count = PROGRAMS // 4
    seen = equal = 0
    for trial in at_random(range(block * count, (block + 1) * count)):
        for output in trial.outputs:
            assert output.held, f"{trial.name}: {output}"
            assert output.times is None or output.times < FAR, f"{trial.name}: {output}"
            seen += 1
            equal += output.bound == 0
    assert equal > seen // 2


def test_random_layers_stay_within_their_bounds() -> None:
    """Loops, peeled and pipelined."""
    outputs = [output for trial in layers(range(PROGRAMS // 10)) for output in trial.outputs]
    assert outputs and all(output.held for output in outputs)
