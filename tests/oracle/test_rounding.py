"""No element of a program differs by more than its bound, and bounds are near the largest difference seen."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest
from generators.rounding_trials import RoundingTrial, at_random, golden, layers

from hlorewrite.checks.reference.rounding import bounds as bounds_module

PROGRAMS = 5000 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 120
FAR = 100.0
"""A bound above so many times the largest difference, at the element of that difference, says little."""


def wrong(trials: Iterable[RoundingTrial]) -> list[str]:
    """Outputs with an element above its bound, and those whose bound is far above their largest difference."""
    return [f"{trial.name}: {output}" for trial in trials for output in trial.outputs
            if not output.held or (output.times is not None and output.times > FAR)]


@pytest.mark.parametrize("block", range(4))
def test_random_programs_stay_within_their_bounds(block: int) -> None:
    """Each in one pipeline; most outputs are equal bit for bit, which their fingerprints say."""
    count = PROGRAMS // 4
    trials = list(at_random(range(block * count, (block + 1) * count)))
    assert wrong(trials) == []
    outputs = [output for trial in trials for output in trial.outputs]
    assert sum(output.widest == 0 for output in outputs) > len(outputs) // 2


def test_random_layers_stay_within_their_bounds() -> None:
    """Loops, peeled and pipelined."""
    trials = list(layers(range(PROGRAMS // 10)))
    assert trials and wrong(trials) == []


def test_golden_programs_stay_within_their_bounds() -> None:
    """Every module that the reference interpreter executes."""
    trials = list(golden(seeds=(0,)))
    assert wrong(trials) == []
    assert sum(trial.times is not None for trial in trials) >= 20


@pytest.mark.parametrize("factor", [0.5, 200.0])
def test_bounds_of_another_size_are_found(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of half their size do not hold, and of 200 times their size are too far."""
    monkeypatch.setattr(bounds_module, "_SLACK", factor)
    assert any(wrong([trial]) for trial in golden("comm-shift", seeds=(0,)))
