"""Random loops that count in unusual ways through passes and pipelines: equal values."""

from __future__ import annotations

import os
import random

import pytest
from generators.check import BESIDE_COMPUTE, checked
from generators.code_mutation import replace_source
from generators.structure.random_counters import random_counters

PROGRAMS = 2000 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 80
PIPELINES = ("comm-shift", "comm", BESIDE_COMPUTE, "hoist-collectives", "peel-last-micro-batch",
             "rotate-collectives{outer=true}", "sink-reductions,comm-shift")
KEEPS_BYTES = ("comm-shift", "comm", "hoist-collectives")  # copies of a branch may go another way than the branch


@pytest.mark.parametrize("block", range(4))
def test_random_counters(block: int) -> None:
    """Each program goes through one of the pipelines; many change, and the interpreter runs both."""
    changed = 0
    for seed in range(block, PROGRAMS, 4):
        pipeline = PIPELINES[seed // 4 % len(PIPELINES)]
        for what in checked(random_counters(random.Random(seed)), [pipeline], seed):
            copies = what.finding is not None and what.finding.kind == "more" and pipeline not in KEEPS_BYTES
            assert copies or what.finding is None, f"seed {seed}: {what.finding}"
            changed += what.changed
    assert changed > PROGRAMS // 16


def test_counters_that_wrap_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs hold counters of a few bits that pass the end of their type."""
    replace_source("hlorewrite.passes.rotate_collectives.emit", "wrapped(start + step, first.type)", "start + step",
                   monkeypatch)
    assert any(what.finding and what.finding.kind == "crash" for seed in range(120, 400)  # none before
               for what in checked(random_counters(random.Random(seed)), ["rotate-collectives{outer=true}"], seed))
