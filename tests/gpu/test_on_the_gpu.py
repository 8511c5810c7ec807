"""The GPT step on the GPUs of this machine: rewritten, compiled, run concurrently with the original.

Collected where there is a GPU (``tests/conftest.py``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GPUS = sorted(Path("/dev").glob("nvidia[0-9]*"))


def command(*words: str, expect: int = 0) -> str:
    """Runs a command with the GPUs visible; returns what it printed."""
    environment = {k: v for k, v in os.environ.items() if k not in ("JAX_PLATFORMS", "XLA_FLAGS")}
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == expect, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The step for all GPUs of this machine, before and after comm-shift."""
    folder = tmp_path_factory.mktemp("gpt")
    before, after = str(folder / "step.export"), str(folder / "shifted.export")
    command("examples/gpt.py", "--size", "tiny", "--devices", str(len(GPUS)), "--out", before)
    command("-m", "hlorewrite", "opt", before, "--pass=comm-shift", "--emit=export", "-o", after)
    return before, after


def test_the_rewritten_step_compiles_for_the_gpus_here(steps: tuple[str, str]):
    printed = json.loads(command("-m", "hlorewrite", "compile", steps[1], "--target", "gpu", "--json"))
    assert all(c["loop_depth"] == 0 for c in printed["collectives"] if c["kind"] == "all-reduce")
    assert printed["memory"]["argument"] > 0


def test_the_rewritten_step_computes_the_same_on_the_gpus_here(steps: tuple[str, str]):
    # Matrix products of the two programs may be tuned differently, and TF32 rounds to ten bits.
    command("-m", "hlorewrite", "verify", *steps, "--on", "gpu", "--tol", "1e-3")
