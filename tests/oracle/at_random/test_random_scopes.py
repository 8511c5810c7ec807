"""Random programs of several manual regions through passes and pipelines: equal values, never more bytes."""

from __future__ import annotations

import os
import random

import pytest
from generators.check import BESIDE_COMPUTE, checked
from generators.code_mutation import replace_source
from generators.structure.random_scopes import random_scopes

PROGRAMS = 3000 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 120
PIPELINES = ("collective-cse", "comm", "comm-shift", "inline,comm", "hoist-collectives,collective-cse", BESIDE_COMPUTE)


@pytest.mark.parametrize("block", range(4))
def test_random_scopes(block: int) -> None:
    """Each program goes through one of the pipelines; many change, and the interpreter runs both."""
    changed = 0
    for seed in range(block, PROGRAMS, 4):
        for what in checked(random_scopes(random.Random(seed)), [PIPELINES[seed // 4 % len(PIPELINES)]], seed):
            assert what.finding is None, f"seed {seed}: {what.finding}"
            changed += what.changed
    assert changed > PROGRAMS // 16


def test_values_of_the_region_around_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs hold equal collectives in a manual region and in one inside it."""
    replace_source("hlorewrite.passes.collective_cse", "takewhile(_reads_around, ancestors(op))", "ancestors(op)",
                   monkeypatch)
    assert any(what.finding for seed in range(70, 190)
               for what in checked(random_scopes(random.Random(seed)), ["collective-cse"], seed))
