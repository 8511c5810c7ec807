"""The benchmark of peers at random moments: what its trials cover, and one of them for real."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "bench" / "processes"
KILLED_IN_A_SAVE = 9


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    import moments
    return moments


def test_ninety_trials_cover_kinds_phases_and_ways_to_wait(moments: ModuleType) -> None:
    drawn = [moments.moment_of(number) for number in range(90)]
    assert set(Counter(each.kind for each in drawn).values()) == {30}
    assert min(Counter((each.kind, each.phase) for each in drawn).values()) >= 7
    assert {each.wait for each in drawn} == set(moments.WAITS)
    assert {each.processes for each in drawn} == {2, 3, 4} and 0 in {each.odd for each in drawn}


def test_who_waits_for_a_dead_peer_in_jaxs_own_exit_ends(moments: ModuleType) -> None:
    """Gloo's error is uncaught under ``patch_jit``: Python ends, and JAX would wait minutes for the dead process."""
    moment = moments.moment_of(KILLED_IN_A_SAVE)
    assert (moment.program, moment.kind, moment.phase, moment.processes) == ("jit", "killed", "save", 3)
    trial = moments.moment_trial(KILLED_IN_A_SAVE)
    assert not trial.wrong, trial
    assert set(trial.ended.values()) == {1}, trial
