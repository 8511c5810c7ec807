"""The script for a day with a GPU, dry on a CPU: every part runs, and a part that fails leaves the others theirs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_a_dry_run_fills_every_part(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "bench/gpu/day.py"), "--dry", "--json", str(tmp_path / "rows.json"),
             "--markdown", str(tmp_path / "report.md")]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    parts = {row["part"] for row in rows}
    assert parts == {"kernels", "steps", "schedule", "memory", "contention", "mocked"}
    measured = {row["name"]: row["measured"] for row in rows if row["measured"]}
    assert {"GPT", "mixture of experts", "convolutions", "product alone"} <= set(measured)
    failed = [row for row in rows if row["name"] == "failed" and "jax-cuda" not in row["note"]]
    assert not failed
    assert "| contention | product with the copy |" in (tmp_path / "report.md").read_text()


def test_a_part_that_fails_or_is_late_leaves_the_others_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench" / "gpu"))
    import day

    def fails(machine: day.Machine) -> Iterator[day.DayRow]:
        yield day.DayRow("kernels", "first", 2.0, 1.0)
        raise ValueError("no such kernel\nmore")

    machine = day.Machine("cpu", "h200:1x1", dry=True, ends=time.monotonic() + 60)
    rows = day._tried("kernels", fails, machine)
    assert [row.name for row in rows] == ["first", "failed"]
    assert rows[0].error == -0.5 and rows[1].note == "ValueError: no such kernel"
    late = day._tried("kernels", fails, day.Machine("cpu", "h200:1x1", dry=True, ends=0.0))
    assert [row.name for row in late] == ["first", "the rest"] and "time" in late[1].note
    assert "kernels: median error 50%" in day.report(rows, "head")
