"""Random programs of devices that find their place through passes and pipelines: equal values, never more bytes."""

from __future__ import annotations

import os
import random

import pytest
from generators.check import checked
from generators.code_mutation import replace_source
from generators.structure.random_places import random_places, random_tables

PROGRAMS = 3000 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 120
PIPELINES = ("comm", "masked-sum-to-broadcast", "gather-to-broadcast", "permutes-to-broadcast",
             "reduce-scatter-creation", "rules", "collective-cse,comm-shift", "inline,comm")


@pytest.mark.parametrize("block", range(4))
def test_random_places(block: int) -> None:
    """Each program goes through one of the pipelines; many change, and the interpreter runs both."""
    changed = 0
    for seed in range(block, PROGRAMS, 4):
        for what in checked(random_places(random.Random(seed)), [PIPELINES[seed // 4 % len(PIPELINES)]], seed):
            assert what.finding is None, f"seed {seed}: {what.finding}"
            changed += what.changed
    assert changed > PROGRAMS // 32


@pytest.mark.parametrize("block", range(2))
def test_random_tables(block: int) -> None:
    """A table that a broadcast transposes is read as the broadcast says."""
    changed = 0
    for seed in range(block, PROGRAMS, 2):
        for what in checked(random_tables(random.Random(seed)), [PIPELINES[seed // 2 % 6]], seed):
            assert what.finding is None, f"seed {seed}: {what.finding}"
            changed += what.changed
    assert changed > PROGRAMS // 16


def test_permutes_that_send_nothing_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs hold permutes without pairs."""
    replace_source("hlorewrite.passes.all_reduce_fusion.members", "if not pairs:", "if False:", monkeypatch)
    assert any(what.finding for seed in range(400)
               for what in checked(random_places(random.Random(seed)), ["all-reduce-fusion"], seed))
