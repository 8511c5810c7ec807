"""Fused calls of every form in XLA's hands, each in a process of its own: a crash of XLA is a failing test.

XLA 0.10.2 refuses an all-reduce of several operands in a manual region, which is what every ``shard_map`` is. That is
why fusion flattens; here each form it writes is compiled inside such a region, run on eight CPU devices, and compiled
for described GPUs where the CUDA compiler is installed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from warm_process import warm_python

WORKER = Path(__file__).with_name("fused_form_worker.py")
ROOT = WORKER.parent.parent.parent
FORMS = ("all-reduce", "all-reduce-of-a-scalar", "maxima-of-two-types", "integers-of-two-types", "reduce-scatter",
         "all-gather", "collective-permute")
FUSION, VARIADIC = "all-reduce-fusion{widen=true}", "all-reduce-fusion{variadic=true}"
REFUSAL = "Sharding is tuple-shaped but validation shape is not"
GPUS = pytest.param("h200:1x8", marks=pytest.mark.skipif(
    importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
    reason="the CUDA compiler is not installed (extra: aot)"))


def outcome(form: str, target: str, pipeline: str = FUSION) -> list[str]:
    """What the worker printed; a worker that dies fails the test with its signal and last words."""
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=str(ROOT))
    done = subprocess.run([warm_python(), str(WORKER), form, target, pipeline], capture_output=True, text=True,
                          env=environment, timeout=300)
    if done.returncode:
        pytest.fail(f"{form} on {target}: the process ended with {done.returncode} after "
                    f"{done.stdout.splitlines()}: {done.stderr[-1500:]}")
    return done.stdout.splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_a_fused_call_computes_the_same_on_eight_devices(form: str) -> None:
    assert outcome(form, "cpu:8") == ["CALLS 2 1", "EQUAL"]


@pytest.mark.parametrize("target", [GPUS])
@pytest.mark.parametrize("form", FORMS)
def test_a_fused_call_compiles_for_gpus(form: str, target: str) -> None:
    """XLA leaves it one call."""
    assert outcome(form, target) == ["CALLS 2 1", "COMPILED 1"]


@pytest.mark.parametrize("target", ["cpu:8", GPUS])
def test_several_operands_are_refused_or_right(target: str) -> None:
    """The form that ``variadic`` asks for: an error of XLA's in words, or a call that works; never a dead process."""
    first, last = outcome("all-reduce", target, VARIADIC)
    assert first == "CALLS 2 1"
    assert last in ("EQUAL", "COMPILED 1") or (last.startswith("REFUSED") and REFUSAL in last)


def test_the_shipped_pipeline_never_writes_the_refused_form() -> None:
    assert outcome("all-reduce", "cpu:8", "comm") == ["CALLS 2 1", "EQUAL"]


def test_a_dead_process_is_a_failing_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard itself: a worker that aborts is reported with its signal."""
    dying = tmp_path / "dying.py"
    dying.write_text("import os\nprint('CALLS 2 1', flush=True)\nos.abort()\n")
    monkeypatch.setattr(sys.modules[__name__], "WORKER", dying)
    with pytest.raises(pytest.fail.Exception, match=r"ended with -6 after \['CALLS 2 1'\]"):
        outcome("all-reduce", "cpu:8")
