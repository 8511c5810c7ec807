"""Random models with random optimizers, clips, cuts, schedules and results: values of jit, state where it belongs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from generators.pipelines import random_pipelines


@pytest.mark.parametrize("seed", [*range(4), *range(100, 116)])
def test_random_optimizers(seed):
    assert not random_pipelines.check(seed)


def test_random_optimizers_in_two_processes():
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    ran = subprocess.run([sys.executable, random_pipelines.__file__, "14", "2", "2"], env=environment, timeout=300,
                         capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "14 ok\n15 ok\n2 seeds, 0 wrong" in ran.stdout, ran.stdout + ran.stderr
