"""Fused calls of every form in XLA's hands, in processes of their own: a crash of XLA is a failing test.

XLA 0.10.2 refuses an all-reduce with several operands in a manual region, which is what every ``shard_map`` is. That is
why fusion flattens; here each form it writes is compiled inside such a region, run on eight CPU devices, and compiled
for described GPUs where the CUDA compiler is installed.
"""

from __future__ import annotations

import functools
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


def outcome(form: str, target: str, pipeline: str = FUSION, forms: tuple[str, ...] = ()) -> list[str]:
    """What the worker printed of a form; one that died there fails the test with its signal and last words.

    Args:
      form: what is asked for.
      target: of the compilation.
      pipeline: the passes.
      forms: all that one process compiles; nothing for this one alone.
    """
    done = of_one_process(WORKER, target, pipeline, forms or (form,))
    printed = {name: lines for name, *lines in (part.splitlines() for part in done.stdout.split("FORM ")[1:])}
    if done.returncode and (not forms or form in [*printed][-1:]):
        pytest.fail(f"{form} on {target}: the process ended with {done.returncode} after "
                    f"{printed.get(form)}: {done.stderr[-1500:]}")
    return printed[form] if form in printed else outcome(form, target, pipeline)  # it came after the one that crashed


@functools.cache
def of_one_process(worker: Path, target: str, pipeline: str,
                   forms: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """A worker that has ended."""
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=str(ROOT))
    return subprocess.run([warm_python(), str(worker), target, pipeline, *forms], capture_output=True, text=True,
                          env=environment, timeout=300)


@pytest.mark.parametrize("form", FORMS)
def test_a_fused_call_computes_the_same_on_eight_devices(form: str) -> None:
    assert outcome(form, "cpu:8", forms=FORMS) == ["CALLS 2 1", "EQUAL"]


@pytest.mark.parametrize("target", [GPUS])
@pytest.mark.parametrize("form", FORMS)
def test_a_fused_call_compiles_for_gpus(form: str, target: str) -> None:
    """XLA leaves it one call."""
    assert outcome(form, target, forms=FORMS) == ["CALLS 2 1", "COMPILED 1"]


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
    dying.write_text("import os\nprint('FORM all-reduce\\nCALLS 2 1', flush=True)\nos.abort()\n")
    monkeypatch.setattr(sys.modules[__name__], "WORKER", dying)
    with pytest.raises(pytest.fail.Exception, match=r"ended with -6 after \['CALLS 2 1'\]"):
        outcome("all-reduce", "cpu:8")


def test_forms_after_one_that_crashes_are_tried_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = tmp_path / "dying.py"
    dying.write_text("import os, sys\nfor form in sys.argv[3:]:\n    print('FORM', form, flush=True)\n"
                     "    if form == 'second': os.abort()\n    print('EQUAL', flush=True)\n")
    monkeypatch.setattr(sys.modules[__name__], "WORKER", dying)
    forms = ("first", "second", "third")
    assert outcome("first", "cpu:8", forms=forms) == outcome("third", "cpu:8", forms=forms) == ["EQUAL"]
    with pytest.raises(pytest.fail.Exception, match=r"second on cpu:8: the process ended with -6 after \[\]"):
        outcome("second", "cpu:8", forms=forms)
