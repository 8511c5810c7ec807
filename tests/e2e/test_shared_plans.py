"""Four real processes, each with a plan file and a policy of its own: those of process 0 hold for all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from worker_processes import PROCESSES, outcomes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a run has written its plan."""
    folder = tmp_path_factory.mktemp("plans")
    lines = [line for line, _ in outcomes("same", "fallback", str(folder), "error")]
    assert [line.split(" ", 4)[:4] for line in lines] == [["OK", "30.0", "30.0", "True"]] * PROCESSES
    assert [path.name for path in folder.iterdir()] == ["0.plan"]
    return folder


def test_all_replay_the_plan_of_the_first_whatever_lies_beside_them(made: Path, tmp_path: Path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "2.plan").write_text((made / "0.plan").read_text()[:200])
    lines = [line for line, _ in outcomes("same", "fallback", str(tmp_path), "error")]
    assert lines == [f"OK 30.0 30.0 True replayed from {tmp_path}/0.plan"] * PROCESSES
    assert not (tmp_path / "1.plan").exists()


@pytest.mark.parametrize(("policy", "begins"), [
    ("error", "STOPPED {0}: is not a plan, or cut short: it is not JSON; nothing is compiled"),
    ("original", "OK 30.0 30.0 False"), ("replan", "OK 30.0 30.0 True"),
])
def test_the_policy_of_the_first_holds_for_all(made: Path, tmp_path: Path, policy: str, begins: str):
    (tmp_path / "0.plan").write_text((made / "0.plan").read_text()[:200])
    shutil.copy(made / "0.plan", tmp_path / "1.plan")
    for line, err in outcomes("same", "fallback", str(tmp_path), policy):
        assert line.startswith(begins.format(tmp_path / "0.plan")), (line, err)
        assert policy == "error" or f"{tmp_path}/0.plan: is not a plan, or cut short" in err


def test_a_process_that_the_plan_does_not_fit_makes_all_run_the_original(made: Path, tmp_path: Path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    for line, err in outcomes("pipeline", "fallback", str(tmp_path), "error"):
        assert line.startswith("OK 30.0 30.0 False"), (line, err)
        assert "process 2 (rewriting)" in err and "passes comm-shift -> comm-shift,canonicalize" in err
