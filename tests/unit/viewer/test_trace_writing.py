"""What ``--trace`` writes: of opt, the decorator, compile and the pipeline simulator."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from view_samples import STEP, content, simulated, traced
from warm_process import warm_python

from hlorewrite.cli.main import guarded
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.trace.format import MANIFEST, OF_A_RUN, is_directory_name, read_manifest
from hlorewrite.passmanager.trace.snapshot import differences, snapshot
from hlorewrite.passmanager.trace.writer import MOST_MISSED, TraceWriter
from hlorewrite.rules.listener import Remark


def test_a_run_is_written_with_everything_known_of_it(tmp_path: Path) -> None:
    """Manifest, both reports, rewrites, remarks, times and rule texts agree with each other."""
    run = traced(tmp_path, STEP, "comm-shift", "--topology=h200:1x4")
    manifest = content(run, "manifest.json")
    assert (manifest["format"], manifest["version"], manifest["complete"]) == ("hlorewrite-trace", 1, True)
    assert manifest["pipeline"] == "comm-shift" and manifest["topology"] == "h200:1x4" and manifest["error"] is None
    before, after = content(run, "before.json"), content(run, "after.json")
    assert manifest["summary"]["executed_bytes"] == [8 * 4096 + 8 * 1024, 4096 + 8 * 1024]
    assert [before["executed_bytes"], after["executed_bytes"]] == manifest["summary"]["executed_bytes"]
    assert before["time_s"] > after["time_s"] > 0
    assert before["nests"] == [{"parent": -1, "op": "while", "source": "train.py:30:5", "trips": 8,
                                "trips_known": True}]
    placed = {row["source"]: (row["nest"], row["trips"]) for row in after["collectives"]}
    assert placed == {"train.py:31:7": (-1, 1), "train.py:35:7": (0, 8)}
    rewrites, remarks = content(run, "rewrites.jsonl"), content(run, "remarks.jsonl")
    assert len(rewrites) == manifest["summary"]["rewrites"] == 1
    assert rewrites[0]["before"].startswith("// in while at train.py:30:5, 8 times\n")
    assert rewrites[0]["after"].startswith("// outside loops\n")
    assert {(row["kind"], row["location"]) for row in remarks} == {("applied", "train.py:31:7"),
                                                                  ("missed", "train.py:35:7")}
    timing = content(run, "timing.json")
    assert [row["step"] for row in timing["steps"]] == ["parse", "comm-shift", "verify", "write"]
    assert timing["passes"] == [{"pass": "comm-shift", "changed": True, "rewrites": 1, "collectives": 2,
                                 "executed_bytes": after["executed_bytes"]}]
    assert content(run, "rules.json")["rules"][0]["equation"].startswith("Moves reductions out of loops")


def test_rules_are_written_with_their_text(tmp_path: Path) -> None:
    """So that a page can show a rule that has changed since."""
    run = traced(tmp_path, STEP, "rules{only=slice-of-all-reduce,all-reduce-of-uniform-sum}")
    assert content(run, "rewrites.jsonl") == []
    text = STEP.replace("stablehlo.tanh %q", "stablehlo.negate %q").replace(
        "%mixed = stablehlo.add %b, %h", "%mixed = stablehlo.add %small, %small")
    run = traced(tmp_path, text, "rules")
    rules = {row["rule"]: row for row in content(run, "rules.json")["rules"]}
    assert "all-reduce-of-uniform-sum" in rules
    rule = rules["all-reduce-of-uniform-sum"]
    assert rule["text"].startswith("rule all-reduce-of-uniform-sum") and "match {" in rule["text"]
    assert rule["equation"].startswith("AR(x) = n") and rule["location"].startswith("patterns/collectives.hlopat:")


def test_what_is_written_does_not_depend_on_the_trace(tmp_path: Path) -> None:
    """Tracing reads; it changes nothing."""
    (tmp_path / "step.mlir").write_text(STEP)
    for name, more in (("plain", []), ("traced", [f"--trace={tmp_path / 'run'}"])):
        words = ["opt", str(tmp_path / "step.mlir"), "-O", "comm", "-o", str(tmp_path / name), *more]
        assert guarded(words) == 0
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "traced").read_bytes()


def test_passes_without_records_are_told_by_what_changed(tmp_path: Path) -> None:
    """all-reduce-fusion records nothing itself; the collectives that went and came are its rewrite."""
    text = STEP.replace('all_reduce"(%mixed)', 'all_reduce"(%h)').replace("stablehlo.tanh %q", "stablehlo.add %b, %q")
    run = traced(tmp_path, text, "comm-shift,all-reduce-fusion")
    fused = [row for row in content(run, "rewrites.jsonl") if row["rule"] == "all-reduce-fusion"]
    assert len(fused) == 1
    assert fused[0]["before"].count("stablehlo.all_reduce") == 2 and fused[0]["after"].count("all_reduce") == 1


def test_a_failed_run_shows_every_step_up_to_the_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifest says that it did not come to its end, and why."""
    (tmp_path / "step.mlir").write_text(STEP.replace("8 : i32>) : tensor<i32>", "8"))
    words = ["opt", str(tmp_path / "step.mlir"), "--pass=comm-shift,comm-shift{wire-dtype=f8}",
             f"--trace={tmp_path / 'run'}", "-o", str(tmp_path / "out.mlir"), "--no-reproducer"]
    assert guarded(words) == 2
    manifest = content(tmp_path / "run", "manifest.json")
    assert manifest["complete"] is False and "f8" in manifest["error"]
    rewrites = content(tmp_path / "run", "rewrites.jsonl")
    assert rewrites[0]["rule"] == "comm-shift" and "f8" in rewrites[-1]["error"]
    assert (tmp_path / "run" / "before.json").exists() and not (tmp_path / "run" / "after.json").exists()


def test_a_new_run_leaves_nothing_of_the_last_one_but_its_timeline(tmp_path: Path) -> None:
    """A page must not mix two runs."""
    run = traced(tmp_path)
    simulated(run)
    for name in OF_A_RUN:
        if name != MANIFEST:
            (run / name).write_text("stale")
    TraceWriter(str(run)).close()
    assert {path.name for path in run.iterdir()} == {"manifest.json", "rewrites.jsonl", "remarks.jsonl",
                                                     "timeline.json", "simulation.json"}
    assert content(run, "rewrites.jsonl") == [] and content(run, "manifest.json")["complete"] is False


def test_a_trace_destroys_no_file_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a folder of others nor what links in a trace lead to."""
    (tmp_path / "step.mlir").write_text(STEP)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "before.json").write_text("precious")
    words = ["opt", str(tmp_path / "step.mlir"), f"--trace={tmp_path / 'mine'}", "-o", str(tmp_path / "out.mlir")]
    assert guarded(words) == 1
    assert 'the folder contains "before.json" and no trace' in capsys.readouterr().err
    assert (tmp_path / "mine" / "before.json").read_text() == "precious"
    assert guarded(["pipeline", "simulate", "--stages=2", "--microbatches=4", "--fwd=1ms",
                    f"--trace={tmp_path / 'mine'}"]) == 1
    run = traced(tmp_path)
    (tmp_path / "precious").write_text("precious")
    for name in ("timeline.json", "simulation.json", "before.json"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(tmp_path / "precious")
    simulated(run)
    TraceWriter(str(run)).close()
    assert (tmp_path / "precious").read_text() == "precious" and read_manifest(run) is not None


def test_the_module_is_written_when_its_trace_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    """One line names the trace; the module stands where it should."""
    (tmp_path / "step.mlir").write_text(STEP)

    def full(self: TraceWriter, name: str) -> object:
        return open("/dev/full", "w", encoding="utf-8")

    monkeypatch.setattr(TraceWriter, "_opened", full)
    words = ["opt", str(tmp_path / "step.mlir"), "--pass=comm-shift", f"--trace={tmp_path / 'run'}", "-o",
             str(tmp_path / "out.mlir")]
    assert guarded(words) == 1
    said = capsys.readouterr().err
    assert "the trace ends early (No space left on device); free space" in said and said.count("\n") == 1
    assert "func.func" in (tmp_path / "out.mlir").read_text()


def test_missed_remarks_are_bounded_for_each_rule(tmp_path: Path) -> None:
    """A large module has one for every op; all others are kept."""
    trace = TraceWriter(str(tmp_path))
    for number in range(MOST_MISSED + 7):
        trace.remark(Remark("missed", "a", str(number), "t.py:1:1"))
        trace.remark(Remark("blocked", "a", str(number), "t.py:1:1"))
    trace.remark(Remark("missed", "b", "other", "t.py:1:1"))
    trace.close()
    kinds = [(row["rule"], row["kind"]) for row in content(tmp_path, "remarks.jsonl")]
    assert kinds.count(("a", "missed")) == MOST_MISSED and kinds.count(("a", "blocked")) == MOST_MISSED + 7
    assert kinds.count(("b", "missed")) == 1 and trace._left_out() == 7


def test_several_modules_in_one_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace is about one module."""
    (tmp_path / "two.mlir").write_text("module {}\n// -----\nmodule {}\n")
    words = ["opt", str(tmp_path / "two.mlir"), "--split-input-file", f"--trace={tmp_path / 'run'}"]
    assert guarded(words) == 2
    assert "--trace records one module" in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_snapshots_see_through_calls_and_count_loops() -> None:
    """A collective in a function that a loop calls stands in that loop."""
    text = STEP.replace("%bent = stablehlo.tanh %q", "%bent = func.call @f(%q)").replace(
        ": tensor<256xf32> loc(\"train.py\":36:7)", ": (tensor<256xf32>) -> tensor<256xf32>").rstrip()[:-1] + """
  func.func private @f(%x: tensor<256xf32>) -> tensor<256xf32> {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, \
type = 0>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<256xf32>) -> \
tensor<512xf32>
    %1 = stablehlo.slice %0 [0:256] : (tensor<512xf32>) -> tensor<256xf32>
    return %1 : tensor<256xf32>
  }
}
"""
    taken = snapshot(parse(text.encode()))
    rows = [(line.what.kind, line.what.trips, taken.path(place))
            for line, place in zip(taken.report.lines, taken.places, strict=True)]
    loop = (("while", "train.py:30:5", 8),)
    assert rows == [("all-reduce", 8, loop), ("all-reduce", 8, loop), ("all-gather", 8, loop)]
    assert taken.as_dict()["groups"] == [[[0, 1, 2, 3]], [[0, 1], [2, 3]]]
    assert differences(taken, taken) == []


def test_programs_of_several_meshes_have_fragments_for_places(tmp_path: Path) -> None:
    """Reductions go from the backward fragments, run for each micro-batch, to those of the update."""
    program = Path(__file__).parents[2] / "programs" / "two_stages.mlir"
    words = ["opt", str(program), "--pass=expose-collectives,comm-shift", f"--trace={tmp_path}", "-o",
             str(tmp_path / "out.mlir")]
    subprocess.run([warm_python(), "-m", "hlorewrite", *words], check=True, env=dict(os.environ, JAX_PLATFORMS="cpu"))
    manifest = content(tmp_path, "manifest.json")
    assert manifest["before_is_after"] == "expose-collectives"
    before, after = content(tmp_path, "before.json"), content(tmp_path, "after.json")
    assert before["executed_bytes"] > after["executed_bytes"] > 0
    names = [[report["nests"][row["nest"]]["source"].partition("_")[0] for row in report["collectives"]
              if row["kind"] == "all-reduce"] for report in (before, after)]
    assert "backward" in names[0] and "update" not in names[0]
    assert set(names[1]) == {"update"}
    for report in (before, after):
        assert all(row["trips"] % report["nests"][row["nest"]]["trips"] == 0 for row in report["collectives"]
                   if row["nest"] >= 0)


def test_a_topology_that_is_too_small_gives_bytes_and_a_sentence() -> None:
    """Tracing must not fail a run that would have worked."""
    taken = snapshot(parse(STEP.encode()), "h200:1x2")
    assert taken.report.time_s is None and taken.report.executed_bytes > 0
    assert any("no times are predicted" in remark for remark in taken.report.remarks)


def test_compile_adds_memory_to_the_right_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files are distinguished by content; another one is refused before anything is compiled."""
    run = traced(tmp_path)
    other = tmp_path / "other.mlir"
    other.write_text(STEP.replace("tanh", "negate"))
    environment = dict(os.environ, JAX_PLATFORMS="cpu")

    def compiled(path: Path) -> subprocess.CompletedProcess[str]:
        words = [warm_python(), "-m", "hlorewrite", "compile", str(path), "--target=cpu:4", f"--trace={run}"]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    assert compiled(tmp_path / "out.mlir").returncode == 0
    assert not (run / "compiled-before.json").exists()
    assert compiled(tmp_path / "step.mlir").returncode == 0
    for side in ("before", "after"):
        assert content(run, f"compiled-{side}.json")["memory"]["argument"] > 0
    refused = compiled(other)
    assert refused.returncode == 2 and "neither the file that was traced nor the output of the run" in refused.stderr


def test_the_decorator_writes_a_trace_for_each_signature(tmp_path: Path) -> None:
    """Below the folder, named after function and module, so that nothing is overwritten by another signature."""
    program = f"""
import jax, jax.numpy as jnp, hlorewrite
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
@hlorewrite.optimize("comm-shift", trace={str(tmp_path)!r})
@jax.jit
def step(xs):
    def inner(xs):
        add = lambda acc, x: (acc + jax.lax.psum(x, "data"), None)
        return jax.lax.scan(add, jnp.zeros(xs.shape[1:]), xs)[0]
    return jax.shard_map(inner, mesh=mesh, in_specs=P(None, "data"), out_specs=P(), check_vma=False)(xs)
step(jnp.ones((3, 4))); step(jnp.ones((3, 4))); step(jnp.ones((5, 4)))
"""
    flags = "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0"
    environment = dict(os.environ, JAX_PLATFORMS="cpu", XLA_FLAGS=flags)
    subprocess.run([warm_python(), "-c", program], env=environment, check=True)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 2 and all(name.startswith("step-") for name in names)
    trips = {content(tmp_path / name, "before.json")["collectives"][0]["trips"] for name in names}
    assert trips == {3, 5}
    assert all(content(tmp_path / name, "manifest.json")["command"] == "optimize" for name in names)


def test_the_simulator_writes_into_a_directory_or_one_file(tmp_path: Path) -> None:
    """Beside what a run of opt wrote, or alone."""
    assert is_directory_name("run") and not is_directory_name("a.json") and is_directory_name(str(tmp_path))
    alone = simulated(tmp_path / "alone")
    assert content(alone, "manifest.json")["command"] == "pipeline simulate"
    assert content(alone, "simulation.json")["microbatches"] == 4
    assert len(content(alone, "timeline.json")["traceEvents"]) > 24
    run = simulated(traced(tmp_path))
    assert content(run, "manifest.json")["command"] == "opt" and (run / "timeline.json").exists()
    assert json.loads((run / "timeline.json").read_text()) == content(alone, "timeline.json")
