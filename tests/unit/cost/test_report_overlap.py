"""No schedule is simulated, so no report says that a collective is hidden or that 0 s are exposed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.cli.main import guarded

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
ALONE = STEP.replace("PRODUCT", "stablehlo.negate %w")


def report(capsys: pytest.CaptureFixture[str], file: Path, text: str, *words: str) -> tuple[list, dict, str]:
    """(overlap of each collective, totals, what the terminal shows)."""
    file.write_text(text)
    assert guarded(["report", str(file), *words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert guarded(["report", str(file), *words]) == 0
    return [each["overlap"] for each in printed["collectives"]], printed["totals"], capsys.readouterr().out


@pytest.mark.parametrize(("text", "topology", "overlap"), [
    (SCHEDULED, "h100:1x8", ["may overlap", "none found"]),  # 64 MiB beside one kernel of 16 bytes
    (SCHEDULED, "", ["may overlap", "none found"]),
    (SCHEDULED.replace(", is_scheduled=true", ""), "h100:1x8", [None, None]),
    (BESIDE, "h100:1x4", ["may overlap"]), (ALONE, "h100:1x4", ["none found"]),
    (BESIDE, "", [None]), (ALONE, "", [None]),
], ids=["scheduled", "scheduled, no topology", "not scheduled", "product beside", "nothing beside",
        "product beside, no topology", "nothing beside, no topology"])
def test_overlap_is_called_what_it_is(text: str, topology: str, overlap: list[str | None], tmp_path: Path,
                                      capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"--topology={topology}"] if topology else []
    printed, totals, shown = report(capsys, tmp_path / "step", text, *words)
    assert printed == overlap and totals["exposed_time_s"] is None
    assert "hidden" not in shown and "exposed 0" not in shown
    assert all((word or "unknown") in shown for word in overlap)
    assert ("exposed time: not simulated" in shown) == bool(topology)


def test_a_trace_and_its_page_hold_no_exposed_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hlorewrite.viewer.model import page_data
    from hlorewrite.viewer.reading import read_trace
    (tmp_path / "in.mlir").write_text(BESIDE)
    assert guarded(["opt", str(tmp_path / "in.mlir"), "--pass=comm-shift", "--topology=h100:1x4",
                    f"--trace={tmp_path / 'trace'}", "-o", str(tmp_path / "out.mlir")]) == 0
    manifest = json.loads((tmp_path / "trace" / "manifest.json").read_text())
    assert manifest["summary"]["exposed_time_s"] == [None, None]
    before = json.loads((tmp_path / "trace" / "before.json").read_text())
    assert before["exposed_time_s"] is None and before["collectives"][0]["overlap"] == "may overlap"
    assert "exposed_s" not in json.dumps(page_data(read_trace(tmp_path / "trace")))
