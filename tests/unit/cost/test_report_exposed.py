"""Exposed time in reports is that of the simulated schedule; where there is no schedule, none is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.cli.main import guarded
from hlorewrite.cost import topology
from hlorewrite.timeline import simulate

SCHEDULED = """HloModule m, is_scheduled=true, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %main (p: f32[16777216], q: f32[4]) -> f32[16777216] {
  %p = f32[16777216]{0} parameter(0)
  %q = f32[4]{0} parameter(1)
  %s = f32[16777216]{0} all-reduce-start(%p), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add
  %f = f32[4]{0} fusion(%q), kind=kLoop, calls=%add
  %d = f32[16777216]{0} all-reduce-done(%s)
  ROOT %g = f32[16777216]{0} all-reduce(%d), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add
}
"""
STEP = """func.func @main(%a: tensor<1024xf32>, %w: tensor<64x64xf32>) -> (tensor<1024xf32>, tensor<64x64xf32>) {
  %r = "stablehlo.all_reduce"(%a) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
    : (tensor<1024xf32>) -> tensor<1024xf32>
  %m = PRODUCT : tensor<64x64xf32>
  return %r, %m : tensor<1024xf32>, tensor<64x64xf32>
}
"""
BESIDE = STEP.replace("PRODUCT :", "stablehlo.dot_general %w, %w, contracting_dims = [1] x [0] : "
                                   "(tensor<64x64xf32>, tensor<64x64xf32>) ->")


def report(capsys: pytest.CaptureFixture[str], file: Path, text: str, *words: str) -> tuple[list, dict, str]:
    """(exposed seconds of each collective, the JSON object, what the terminal shows)."""
    file.write_text(text)
    assert guarded(["report", str(file), *words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert guarded(["report", str(file), *words]) == 0
    return [each["exposed_s"] for each in printed["collectives"]], printed, capsys.readouterr().out


def test_scheduled_hlo_has_the_exposed_time_of_its_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One 64 MiB all-reduce next to a kernel of 16 bytes, and one next to nothing: both are exposed nearly whole."""
    exposed, printed, shown = report(capsys, tmp_path / "step", SCHEDULED, "--topology=h100:1x8")
    step = simulate(SCHEDULED, topology("h100:1x8"))
    assert exposed == [one.exposed_s for one in step.collectives]
    assert printed["totals"]["exposed_time_s"] == pytest.approx(step.exposed_s)
    assert step.exposed_s > 0.99 * printed["totals"]["time_s"]
    assert "exposed" in shown.splitlines()[2] and "20% slower" in shown


@pytest.mark.parametrize(("text", "words", "says"), [
    (SCHEDULED, [], ""), (BESIDE, [], ""), (BESIDE, ["--topology=h100:1x4"], "exposed time needs a schedule"),
    (SCHEDULED.replace(", is_scheduled=true", ""), ["--topology=h100:1x8"], "this HLO is not scheduled"),
], ids=["no topology", "StableHLO, no topology", "StableHLO", "not scheduled"])
def test_without_schedule_or_topology_exposed_time_is_not_known(text: str, words: list[str], says: str, tmp_path: Path,
                                                                capsys: pytest.CaptureFixture[str]) -> None:
    exposed, printed, shown = report(capsys, tmp_path / "step", text, *words)
    assert not any(exposed) and printed["totals"]["exposed_time_s"] is None
    assert says in shown and "overlap" not in shown


def test_what_is_not_known_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SCHEDULED.replace("fusion(%q), kind=kLoop, calls=%add", 'custom-call(%q), custom_call_target="attention"')
    _, printed, shown = report(capsys, tmp_path / "step", text, "--topology=h100:1x8")
    assert any("f calls attention" in remark for remark in printed["remarks"]) and "note: f calls attention" in shown


def test_a_trace_and_its_page_hold_no_exposed_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hlorewrite.viewer.model import page_data
    from hlorewrite.viewer.reading import read_trace
    (tmp_path / "in.mlir").write_text(BESIDE)
    assert guarded(["opt", str(tmp_path / "in.mlir"), "--pass=comm-shift", "--topology=h100:1x4",
                    f"--trace={tmp_path / 'trace'}", "-o", str(tmp_path / "out.mlir")]) == 0
    manifest = json.loads((tmp_path / "trace" / "manifest.json").read_text())
    assert manifest["summary"]["exposed_time_s"] == [None, None]
    before = json.loads((tmp_path / "trace" / "before.json").read_text())
    assert before["exposed_time_s"] is None and "overlap" not in before["collectives"][0]
    assert "exposed_s" not in json.dumps(page_data(read_trace(tmp_path / "trace")))
