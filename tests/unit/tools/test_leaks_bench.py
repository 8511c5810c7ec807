"""A few rounds of ``bench/overhead/leaks.py``: optimized steps keep nothing that jitted ones do not."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "bench" / "overhead"


@pytest.mark.parametrize("case", ["recompiled", "signatures", "dropped"])
def test_rounds_keep_nothing(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import leaks
    monkeypatch.setattr(leaks, "WARM", 4)
    kept = leaks.grown(case, optimized=True, rounds=6)
    assert (kept.files, kept.threads) == (0, 0), kept
    if case != "signatures":
        assert kept.own == 0 and kept.objects <= 6 * leaks.MOST_OBJECTS, kept


def test_what_is_kept_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import leaks
    nothing = leaks.Kept(0.0, 0, 0, 0, 0)
    for name, value in (("files", 1), ("threads", 1), ("objects", 70 * 1000), ("mib", 90.0), ("own", 1)):
        found = {"jit": nothing, "optimize": leaks.Kept(**{**asdict(nothing), name: value})}
        assert leaks.faults("recompiled", 1000, found) == [name]
        assert leaks.faults("recompiled", 1000, {"jit": nothing, "optimize": nothing}) == []
