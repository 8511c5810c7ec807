"""``hlorewrite pipeline run``, the timeline and the measured times."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path

import jax
import pytest
from pipeline_cases import TWO_STAGES, edited, two_stages, values
from warm_process import warm_python

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.runtime.driver import PipelineDriver
from hlorewrite.pipelines.runtime.timeline import measured_times, timeline, trace_events, write_timeline, write_times
from hlorewrite.pipelines.runtime.trial import Trials

ROOT = Path(__file__).resolve().parents[4]


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    return subprocess.run([warm_python(), "-m", "hlorewrite", "pipeline", *words], env=environment, cwd=ROOT,
                          check=False, capture_output=True, text=True, timeout=300)


def test_a_schedule_with_and_without_comm_shift(tmp_path: Path):
    done = command("run", str(TWO_STAGES), "--schedule", "gpipe", "--comm-shift", "on", "--steps", "1", "--json",
                   "--save-times", str(tmp_path / "times.json"), "--trace", str(tmp_path / "step.json"))
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["equal"]
    assert [(row["schedule"], row["comm_shift"], row["equal"]) for row in printed["runs"]] == [
        ("gpipe", "off", True), ("gpipe", "on", True)]
    assert done.stderr == ""
    simulated = command("simulate", str(TWO_STAGES), "--times", str(tmp_path / "times.json"), "--json")
    assert simulated.returncode == 0, simulated.stderr
    assert json.loads(simulated.stdout)["iteration_time_s"] > 0
    names = {event["name"] for event in json.loads((tmp_path / "step.json").read_text())["traceEvents"]}
    assert {"F0", "B3", "transfer 0 2", "update_1"} <= names


def test_a_schedule_that_does_not_fit_is_one_line():
    done = command("run", str(TWO_STAGES), "--schedule", "zb-h1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("hlorewrite: error: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(("words", "sentence"), [
    (("run",), "run needs a program"), (("run", str(TWO_STAGES), "--steps", "0"), "--steps 0")])
def test_usage(words: tuple[str, ...], sentence: str):
    done = command(*words)
    assert done.returncode == 2 and sentence in done.stderr


def test_different_values_are_seen():
    trials = Trials(seed=0, steps=1)
    assert trials.run(two_stages(), "1f1b", "1f1b", "off", must_fit=True).equal
    changed = trials.run(edited(("dense<2.000000e+00>", "dense<2.001000e+00>")), "1f1b", "1f1b", "on", must_fit=True)
    assert not changed.equal
    assert changed.error is not None and changed.error > 1e-5


def test_schedules_that_do_not_fit_are_told_or_refused():
    trials = Trials(seed=0, steps=1)
    told = trials.run(two_stages(), "zb-h1", "zb-h1", "off", must_fit=False)
    assert told.seconds is None and "splits the backward pass in two" in told.why
    with pytest.raises(PlanError, match="no schedule fits"):
        trials.check_any([told], "x.mlir")


def test_measured_times_name_every_fragment_and_transfer(tmp_path: Path):
    driver = PipelineDriver(two_stages())
    placed = driver.place(values())
    times = measured_times(driver, placed, repeats=1)
    assert sorted(times["fragments"]) == sorted({step.callee for step in driver.program.steps
                                                 if hasattr(step, "callee")})
    assert sorted(times["transfers"]) == ["transfer 0", "transfer 1"]
    assert all(seconds > 0 for each in times.values() for seconds in each.values())
    assert not any(array.is_deleted() for array in placed)
    write_times(times, str(tmp_path / "times.json"))
    assert json.loads((tmp_path / "times.json").read_text()) == times


def test_a_timeline_respects_data_and_order(tmp_path: Path):
    driver = PipelineDriver(two_stages(), schedule="eager-1f1b")
    placed = driver.place(values())
    spans = timeline(driver, placed)
    assert not any(array.is_deleted() for array in placed)
    jax.block_until_ready(placed)
    assert len(spans) == len(driver.instructions)
    at = {(span.mesh, span.name): span for span in spans}
    assert len(at) == len(spans)
    assert all(span.start_s <= span.end_s for span in spans)
    for microbatch in range(4):
        chain = [at[0, f"F{microbatch}"], at[0, f"transfer 0 {microbatch}"], at[1, f"F{microbatch}"],
                 at[1, f"B{microbatch}"], at[1, f"transfer 1 {microbatch}"], at[0, f"B{microbatch}"]]
        assert all((a.end_s <= b.end_s and a.end_s <= b.start_s + 1e-9) or b.start_s == b.end_s
                   for a, b in itertools.pairwise(chain))
    for mesh in (0, 1):
        row = [span for span in spans if span.mesh == mesh and span.row == 0]
        assert all(a.end_s <= b.start_s + 1e-9 or b.start_s == b.end_s for a, b in itertools.pairwise(row))
    write_timeline(driver, spans, str(tmp_path / "step.json"))
    events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    assert events == trace_events(driver, spans)
    assert [event["args"]["name"] for event in events if event["name"] == "process_name"] == ["mesh m0", "mesh m1"]


def test_a_program_that_is_wrong_about_its_sums_differs_between_schedules(tmp_path: Path):
    wrong = tmp_path / "wrong.mlir"
    text = TWO_STAGES.read_text()
    assert text.count("stablehlo.add %a, %g") == 2
    wrong.write_text(text.replace("stablehlo.add %a, %g", "stablehlo.subtract %g, %a"))
    done = command("run", str(wrong), "--steps", "1")
    assert done.returncode == 3, done.stderr
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "reference" in rows["gpipe"] and "DIFFERS" in rows["1f1b"] and "does not fit" in rows["zb-h1"]


def test_progress_is_silent_in_a_pipe(capfd: pytest.CaptureFixture[str]):
    PipelineDriver(two_stages(), progress=True)
    assert capfd.readouterr() == ("", "")
