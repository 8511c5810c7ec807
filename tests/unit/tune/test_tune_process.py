"""The process that measures choices: its end when the time is over, crashes, refusals, and what it leaves behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from hlorewrite.cli.step.tune_run import TuneRun
from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.jaxbridge.choose.tune_process import MeasuringEnded, TuneProcess
from hlorewrite.tune.choice import TuneCache, TuneChoice
from hlorewrite.util.progress import nothing

GIB = 1 << 30
WORKER = """
import json, os, sys, time
asked = 0
for line in sys.stdin:
    request = json.loads(line)
    asked += "measure" in request
    if asked > {good}:
        {then}
    point = {{"choice": request.get("measure"), "step_s": 10.0 - asked, "exposed_s": 0.0, "way": "",
              "executed_bytes": 1, "memory_bytes": 1, "digest": str(asked), "compile_s": None, "failed": ""}}
    answer = {{"plan": "plan of " + request["plan"]["passes"]}} if "plan" in request else {{"point": point}}
    print(json.dumps(answer), flush=True)
"""


def process(good: int, then: str, ends_s: float | None = None) -> TuneProcess:
    """A process that answers some requests, and does something else then."""
    made = TuneProcess(b"module", "a.mlir", "h200:1x8", None if ends_s is None else time.monotonic() + ends_s)
    made.command = (sys.executable, "-c", WORKER.format(good=good, then=then))
    return made


def test_a_compilation_under_way_is_ended(tmp_path: Path) -> None:
    """Two choices are measured; the third would take ten minutes."""
    with process(2, f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)", 5) as measuring:
        folder = Path(measuring._folder.name)
        cache = TuneCache(tmp_path / "cache", ("module",))
        run = TuneRun(measuring, cache, nothing, GIB, [], False, planned=True)
        begun = time.monotonic()
        found = run.search()
        assert 4.5 < time.monotonic() - begun < 30
        assert [point.choice.passes for point in found.points] == ["", "auto"] and found.left_out > 1
        assert run.plan(found) == "plan of auto" and run.finished(found) == found
        assert len(TuneCache(tmp_path / "cache", ("module",)).points) == 2
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)
    assert not folder.exists()


def test_a_plan_is_made_after_the_time_where_figures_come_from_the_cache(tmp_path: Path) -> None:
    with process(9, "pass", 0) as measuring:
        cache = TuneCache(tmp_path, ("module",))
        with process(9, "pass") as earlier:
            made = earlier.measured(TuneChoice("comm"))
        assert made is not None and cache.add(made)
        run = TuneRun(measuring, cache, nothing, GIB, [], False, planned=True)
        found = run.search()
        assert [point.choice for point in found.points] == [TuneChoice("comm")] and found.left_out
        assert run.plan(found) == "plan of comm"


@pytest.mark.parametrize(("then", "said"), [("os.abort()", "was ended by SIGABRT"), ("os._exit(3)", "exit code 3"),
                                            ("os.kill(os.getpid(), 9)", "was ended by SIGKILL")])
def test_a_crash_is_of_one_choice_and_not_kept(tmp_path: Path, then: str, said: str) -> None:
    """The next choice gets a new process."""
    with process(1, then) as measuring:
        measuring.check()
        assert measuring.measured(TuneChoice("")) is not None
        with pytest.raises(MeasuringEnded, match=said):
            measuring.measured(TuneChoice("comm"))
        cache = TuneCache(tmp_path, ("module",))
        run = TuneRun(measuring, cache, nothing, GIB, [], False, planned=False)
        points = run.search().points
        failed = {point.choice for point in points if said in point.failed}
        assert failed and len(points) > len(failed) and not failed & set(cache.points)


def test_what_cannot_be_tuned_is_refused_by_the_process() -> None:
    with TuneProcess(b"{", "a.mlir", "h200:1x8") as measuring, pytest.raises(HlorewriteError, match=r"^a\.mlir"):
        measuring.check()
    text = b"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    with TuneProcess(text, "a.mlir", "h300:1x8") as measuring, pytest.raises(UsageError, match='unknown target "h300'):
        measuring.check()


def test_a_plan_of_nothing_is_refused() -> None:
    with process(0, "time.sleep(600)", 0) as measuring:
        run = TuneRun(measuring, TuneCache(None, ()), nothing, GIB, [], False, planned=True)
        found = run.search()
        assert not found.points
        with pytest.raises(HlorewriteError, match="no plan is written"):
            run.plan(found)
