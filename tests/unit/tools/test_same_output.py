"""What this version writes is what ``tests/same_output.txt`` says, and a changed output is found."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "same_output.py"


@pytest.fixture(scope="module")
def same_output() -> ModuleType:
    spec = importlib.util.spec_from_file_location("same_output", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["same_output"] = module
    spec.loader.exec_module(module)
    return module


def test_all_outputs_are_those_that_were_kept(same_output: ModuleType) -> None:
    made_with, _ = same_output.read_kept(same_output.KEPT.read_text(encoding="utf-8"))
    if made_with != importlib.metadata.version("jaxlib"):
        pytest.skip(f"the digests are of jaxlib {made_with}, and other releases print modules otherwise")
    variables = dict(os.environ, JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="8", TF_CPP_MIN_LOG_LEVEL="3")
    done = subprocess.run([sys.executable, str(TOOL)], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nsee: python tools/same_output.py --against REV NAME"


def test_a_changed_a_new_and_a_missing_output_are_named(same_output: ModuleType) -> None:
    kept = {"a.mlir comm": "1", "b.mlir comm": "2", "c.mlir run": "3"}
    now = {"a.mlir comm": "1", "b.mlir comm": "9", "d.mlir run": "3"}
    assert same_output.compared(kept, now) == ["b.mlir comm: differs", "c.mlir run: is gone", "d.mlir run: is new"]


def test_module_remarks_plan_and_report_are_all_compared(same_output: ModuleType) -> None:
    """A reduction in a loop: each surface shows what it is there for."""
    subject = next(each for each in same_output.golden_subjects() if "comm-shift/accumulation" in each.name
                   and each.alone and each.commands)
    made = same_output.outputs_of(subject)
    assert set(made) == {"comm", "time", "report", "run"}
    assert "func.func" in made["comm"] and "remark: " in made["comm"] and '"format_version"' in made["comm"]
    assert '"executed_bytes"' in made["report"]
    assert re.search(r"\d\.\d{3}", made["report"]) and not re.search(r"\d\.\d{9}", made["report"])  # of any processor


def test_commands_of_run_lines_stop_at_the_pipe_and_leave_other_files_out(same_output: ModuleType) -> None:
    text = ("// RUN: %hlorewrite opt %s --pass=inline \\\n// RUN:   --stats=json | %filecheck %s\n"
            "// RUN: %hlorewrite opt %t --pass=inline\n// RUN: not %hlorewrite opt %s\n")
    assert list(same_output.run_lines(text)) == [("opt", "%s", "--pass=inline", "--stats=json"), ("opt", "%s")]
