"""The demo itself, on its smallest size."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest
from warm_process import warm_python

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                    reason="the CUDA compiler is not installed (extra: aot)")
def test_the_demo_reduces_each_gradient_once_and_keeps_the_values(tmp_path: Path):
    done = subprocess.run([warm_python(), str(ROOT / "tools" / "demo.py"), "--size", "tiny", "--folder",
                           str(tmp_path)], capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8.00 times less" in done.stdout
    assert ": equal" in done.stdout
    assert done.stderr == ""
