"""A few HLO programs with one place changed: none is proved that computes something else (``bench/xla/mutants.py``)."""

from __future__ import annotations

import importlib.util
import random
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SPEC = importlib.util.spec_from_file_location("hlo_mutants", ROOT / "bench" / "xla" / "mutants.py")
assert SPEC is not None and SPEC.loader is not None
mutants = sys.modules["hlo_mutants"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutants)
COUNT = 12


@pytest.mark.parametrize("of", ["hlo", "stablehlo"])
@pytest.mark.parametrize("dump", ["nested_slices", "code_motion"])
def test_no_changed_program_is_proved_wrongly(dump: str, of: str):
    programs = mutants.texts([str(ROOT / "tests/unit/jaxbridge/validate_xla/dumps" / dump)], of)
    rnd, judged = random.Random(3), 0
    for trial in range(10 * COUNT):
        name, text = rnd.choice(programs)
        made = mutants.changed(text, rnd)
        if made is None:
            continue
        answer = mutants.in_fork(partial(mutants.judged, text, made[0], name, of, trial, quick=True))
        judged += answer is not None
        assert answer is None or answer[0] != "wrongly proved", made[2]
        if judged == COUNT:
            break
    assert judged >= COUNT // 2
