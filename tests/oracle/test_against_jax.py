"""The oracle computes what JAX computes on eight devices: collectives, loops, branches, shuffled meshes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from warm_process import warm_python

from hlorewrite.checks.reference import prepare
from hlorewrite.ir.load import load

SCRIPT = Path(__file__).with_name("jax_programs.py")
NAMES = ("accumulate", "accumulate_shuffled", "ring", "collectives", "collectives_shuffled", "by_group",
         "by_group_shuffled", "sparse")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What JAX made of every program."""
    made = tmp_path_factory.mktemp("jax")
    done = subprocess.run([warm_python(), str(SCRIPT), str(made)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("name", NAMES)
def test_same_as_jax(name: str, folder: Path) -> None:
    """Within rounding."""
    program = prepare(load(str(folder / f"{name}.mlir")))
    assert (program.kind, program.devices) == ("global", 8)
    data = np.load(folder / f"{name}.npz")
    outcome = program.run([[data["w"], data["xs"]]])
    assert not outcome.diverged
    for position, actual in enumerate(outcome.outputs[0]):
        np.testing.assert_allclose(actual, data[f"out{position}"], rtol=2e-5, atol=2e-5)
