"""Random SPMD programs through the passes: every device computes what it did, or nothing changed at all.

600 programs in the default run, each in one pipeline; ``HLOREWRITE_NIGHTLY=1`` or the hypothesis profile ``nightly``
runs 10 000. ``make fuzz`` runs each of 10 000 in every pipeline.
"""

from __future__ import annotations

import os
import random

import pytest
from generators.check import EVERY, checked
from generators.random_programs import random_program
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

NIGHTLY = os.environ.get("HLOREWRITE_NIGHTLY") == "1" or os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
PROGRAMS = 10_000 if NIGHTLY else 600
SHRUNK = PROGRAMS // 5  # drawn one decision at a time: hypothesis reduces these when they fail


class Drawn:
    """Decisions from hypothesis, so that a failing program is reduced decision by decision."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def randrange(self, stop: int, /) -> int:
        """A number below ``stop``."""
        return self.data.draw(st.integers(0, stop - 1))


def check_one(text: str, pipeline: str, input_seed: int) -> bool:
    """Checks one program in one pipeline; returns whether it changed."""
    [result] = checked(text, [pipeline], input_seed)
    assert result.finding is None, f"{result.finding}\n{text}"
    return result.changed


@seed(7)
@settings(max_examples=SHRUNK, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example])
@given(st.data(), st.sampled_from(EVERY))
def test_drawn_programs(data: st.DataObject, pipeline: str) -> None:
    """Programs drawn decision by decision."""
    check_one(random_program(Drawn(data)), pipeline, 0)


@pytest.mark.parametrize("block", range(12))
def test_seeded_programs(block: int) -> None:
    """Programs from seeds; most of them change, or this test would say little."""
    count = (PROGRAMS - SHRUNK) // 12
    changed = sum(check_one(random_program(random.Random(number)), EVERY[number % len(EVERY)], number)
                  for number in range(block * count, (block + 1) * count))
    assert changed > count // 4
