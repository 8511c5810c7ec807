"""The validator proves none of many wrong pairs."""

from __future__ import annotations

import os
import random

import pytest
from generators.structure.wrong_pairs import wrong_pair

from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved
from hlorewrite.ir.load import parse

PAIRS = 400 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 80


@pytest.mark.parametrize("block", range(2))
def test_wrong_pairs(block: int) -> None:
    """Loops of unequal trips, dimensions in another order, tables read through them, identities of 8-bit floats."""
    for seed in range(block, PAIRS, 2):
        pair = wrong_pair(random.Random(seed))
        verdict = validate(parse(pair.before), parse(pair.after))
        assert not isinstance(verdict, Proved), f"seed {seed}, {pair.mistake}:\n{pair.before}\n{pair.after}"
        assert "cannot" not in str(verdict), f"seed {seed}: {verdict}"
