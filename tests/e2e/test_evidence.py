"""What docs/evidence.md shows, in small: resumed training runs, random state, crossing checkpoints, the same bytes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EVIDENCE = Path(__file__).resolve().parents[2] / "bench" / "evidence"


def run(script: str, *words: str) -> str:
    """What a script prints; it has to end well."""
    done = subprocess.run([sys.executable, str(EVIDENCE / script), *words], env=dict(os.environ), text=True,
                          capture_output=True, timeout=550, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout


def test_random_state_is_the_same_with_and_without():
    assert "0 keys and 0 sums of dropout masks differ" in run("random_state.py", "--steps", "4", "--layers", "1")


def test_checkpoints_cross_over():
    assert run("crossing.py", "--steps", "4", "--layers", "1").count("with") >= 4


def test_outputs_and_plans_do_not_depend_on_the_process(tmp_path: Path):
    source = EVIDENCE.parents[1] / "tests" / "lit" / "rules" / "and-of-all-reduces.mlir"
    (tmp_path / "one.mlir").write_bytes(source.read_bytes())
    printed = run("same_bytes.py", "--programs", str(tmp_path), "--runs", "2")
    assert "1 programs, 2 runs each: 0 differ" in printed
    assert re.search(r"^all outputs and plans: [0-9a-f]{16}$", printed, re.M)


def test_one_command_runs_the_scripts_and_says_which_failed(tmp_path: Path):
    assert run("", "--small", "--only", "random").endswith("all claims hold\n")
    for file in ("__main__.py", "random_state.py"):
        (tmp_path / file).write_text((EVIDENCE / file).read_text() if file.startswith("_") else "raise SystemExit(1)")
    done = subprocess.run([sys.executable, str(tmp_path), "--only", "random"], text=True, capture_output=True,
                          check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "failed: random_state.py")


@pytest.mark.slow
def test_a_killed_training_is_resumed_bit_by_bit():
    assert "4 of 4 processes are equal bit by bit" in run("resume.py", "--steps", "6")


def test_a_spike_is_counted():
    """The counter of the comparison over seeds sees what it is for."""
    code = "import sys, numpy as np; sys.path.insert(0, sys.argv[1]); import seeds; losses = np.loadtxt(sys.stdin); " \
        "print(seeds.spikes(losses))"
    calm = 1 + 0.01 * np.random.default_rng(0).normal(size=200)
    spiky = calm.copy()
    spiky[[100, 150]] = 1.2
    for losses, count in ((calm, "0"), (spiky, "2")):
        done = subprocess.run([sys.executable, "-c", code, str(EVIDENCE)], input="\n".join(map(str, losses)), text=True,
                              capture_output=True, check=True)
        assert done.stdout.strip() == count
