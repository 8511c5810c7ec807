"""Random functions that call each other through passes and pipelines: equal values, never more bytes."""

from __future__ import annotations

import os
import random

import pytest
from generators.check import BESIDE_COMPUTE, checked
from generators.code_mutation import replace_source
from generators.random_calls import random_calls

PROGRAMS = 4000 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 160
PIPELINES = ("collective-cse", "hoist-collectives,collective-cse", "comm", BESIDE_COMPUTE, "inline,comm",
             "rules,comm-shift")


@pytest.mark.parametrize("block", range(4))
def test_random_calls(block: int) -> None:
    """Each program goes through one of the pipelines; many change, and the interpreter runs both."""
    changed = 0
    for seed in range(block, PROGRAMS, 4):
        for what in checked(random_calls(random.Random(seed)), [PIPELINES[seed // 4 % len(PIPELINES)]], seed):
            assert what.finding is None, f"seed {seed}: {what.finding}"
            changed += what.changed
    assert changed > PROGRAMS // 16


def test_numbers_through_calls_that_have_none_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs contain calls of functions whose inner calls cannot be numbered."""
    replace_source("hlorewrite.passes.common.value_numbers", "known[result] = self._new()",
                   "known[result] = self._number((result,))", monkeypatch)
    assert any(what.finding for seed in range(260, 400)  # none before
               for what in checked(random_calls(random.Random(seed)), ["collective-cse"], seed))
