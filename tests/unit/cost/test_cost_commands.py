"""The commands estimate, collective, calibrate and report: keys, files, exit codes, one-line errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from hlorewrite.cli.main import guarded

KEYS = {"iteration_time_s", "tflops_per_gpu", "t_comp_s", "t_tp_s", "t_pp_s", "t_dp_s", "t_ep_s", "t_bubble_s",
        "r_comm", "r_bubble", "memory_bytes_per_gpu"}
SMALL = ["--layers", "8", "--hidden", "64", "--heads", "4", "--seq", "16", "--vocab", "128", "--global-batch", "64"]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = guarded(list(words))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_estimate_prints_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "estimate", *SMALL, "--pp", "4", "--tp", "2", "--dp", "4", "--micro-batch", "2",
                       "--topology", "h200:4x8", "--json")
    printed = json.loads(out)
    assert code == 0 and set(printed) >= KEYS
    assert all(isinstance(printed[key], float) for key in KEYS)
    parts = sum(printed[key] for key in ("t_comp_s", "t_tp_s", "t_pp_s", "t_dp_s", "t_ep_s", "t_bubble_s"))
    assert parts == pytest.approx(printed["iteration_time_s"])


def test_estimate_with_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "estimate", *SMALL, "--pp", "2", "--tp", "2", "--dp", "4", "--ep", "1", "--micro-batch",
                       "2", "--virtual-stages", "2", "--recompute", "full", "--sequence-parallel", "--zero", "1",
                       "--dtype", "bf16", "--gpus", "16", "--topology", "h100", "--utilisation", "0.4", "--json")
    assert code == 0 and json.loads(out)["topology"] == "h100:2x8"


@pytest.mark.parametrize("ending", ["npy", "csv", "npz"])
def test_traffic_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    file = tmp_path / f"t.{ending}"
    code, *_ = run(capsys, "estimate", *SMALL, "--pp", "4", "--tp", "2", "--topology", "h200:4x8", "--traffic",
                   str(file))
    assert code == 0
    matrix = np.loadtxt(file, delimiter=",") if ending == "csv" else np.load(file)
    total = matrix["total"] if ending == "npz" else matrix
    assert total.shape == (32, 32) and total[0, 1] > 0 and total[0, 31] == 0


def test_search(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "estimate", *SMALL, "--topology", "h200:2x8", "--search", "--json", "--top", "3")
    rows = json.loads(out)["candidates"]
    assert code == 0 and len(rows) == 3 and set(rows[0]) >= KEYS
    assert rows[0]["iteration_time_s"] <= rows[1]["iteration_time_s"]


@pytest.mark.parametrize(("words", "says"), [
    (["--pp", "3", "--topology", "h200:4x8"], "p*t = 3 does not divide the 32 GPUs"),
    (["--tp", "8", "--topology", "h200:4x8"], "4 heads are not divisible by t = 8"),
    (["--topology", "h20:1x8"], "there is no topology"),
    (["--model", "gtp", "--topology", "h200:1x8"], 'there is no model "gtp"'),
    (["--pp", "-1", "--topology", "h200:1x8"], "sizes must be at least 1"),
    (["--micro-batch", "-2", "--topology", "h200:1x8"], "sizes must be from 1"),
    (["--hidden", "-64", "--topology", "h200:1x8"], "hidden is -64"),
    (["--topology", "h200:1x8", "--traffic", "t.txt"], "unknown file extension"),
    (["--topology", "h200:1x8", "--dtype", "int3"], "dtype"),
])
def test_estimate_refuses(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    code, out, err = run(capsys, "estimate", *SMALL, *words)
    assert code == 2 and out == "" and says in err and len(err.splitlines()) == 1


def test_collective(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "collective", "all-reduce", "--bytes", "1GiB", "--topology", "h200:1x8", "--json")
    printed = json.loads(out)
    assert code == 0 and printed["bytes"] == 1 << 30 and printed["time_s"] == pytest.approx(4.05e-3, rel=0.02)
    assert printed["bus_bandwidth_bytes_per_s"] == pytest.approx(463e9, rel=0.02)


@pytest.mark.parametrize(("words", "says"), [
    (["all-reduce", "--bytes", "-1"], "not negative"), (["all-reduce", "--bytes", "1 foo"], "not a size"),
    (["all-redoce", "--bytes", "1"], 'did you mean "all-reduce"'),
    (["all-reduce", "--bytes", "1", "--group-size", "3"], "not divisible by groups of 3"),
    (["all-reduce", "--bytes", "1", "--groups", "{0,1}"], "not a list of groups"),
])
def test_collective_refuses(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    code, out, err = run(capsys, "collective", *words, "--topology", "h200:1x8")
    assert code == 2 and out == "" and says in err


NCCL_TESTS = """# nThread 1 nGpus 1 minBytes 32768 maxBytes 1073741824
# Using devices
#  Rank  0 Group  0 Pid 1 on host device  0 [0x10] NVIDIA H100
#  Rank  1 Group  0 Pid 2 on host device  1 [0x11] NVIDIA H100
#  Rank  2 Group  0 Pid 3 on host device  2 [0x12] NVIDIA H100
#  Rank  3 Group  0 Pid 4 on host device  3 [0x13] NVIDIA H100
       32768          8192     float    none      -1    18.66    1.76    3.07       0    17.95    1.83    3.20    N/A
   536870912     134217728     float    none      -1   1300.0  412.98  309.73       0   1290.0  416.18  312.14    N/A
  1073741824     268435456     float    none      -1   2500.0  429.50  322.12       0   2505.0  428.64  321.48    N/A
"""


def test_calibrate_round_trip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, made = tmp_path / "all_gather_perf.txt", tmp_path / "mine.toml"
    log.write_text(NCCL_TESTS)
    code, out, _ = run(capsys, "calibrate", str(log), "--topology", "h100:1x8", "-o", str(made), "--json")
    assert code == 0 and json.loads(out)["curves"][0]["median_error_after"] < 0.01
    code, out, _ = run(capsys, "collective", "all-gather", "--bytes", "1GiB", "--topology", f"{made}:1x4", "--json")
    assert json.loads(out)["time_s"] == pytest.approx(2.5e-3)


@pytest.mark.parametrize(("text", "name", "says"), [
    ("nothing\n", "all_reduce_perf.txt", "no line of nccl-tests"),
    ("1048576 262144 float sum -1 oops oops oops\n", "all_reduce_perf.txt", ":1: no time"),
    (NCCL_TESTS, "log.txt", "add --kind"),
])
def test_calibrate_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, name: str, says: str) -> None:
    log, made = tmp_path / name, tmp_path / "mine.toml"
    log.write_text(text)
    code, _, err = run(capsys, "calibrate", str(log), "--topology", "h100:1x8", "-o", str(made))
    assert code in (1, 2) and says in err and not made.exists()


LOOP = """
module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<1024xf32>
      cond {
        %n = stablehlo.constant dense<5> : tensor<i32>
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %i, %one : tensor<i32>
        %sum = "stablehlo.all_reduce"(%acc) ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
            replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>}
          : (tensor<1024xf32>) -> tensor<1024xf32>
        stablehlo.return %next, %sum : tensor<i32>, tensor<1024xf32>
      }
    %moved = "stablehlo.collective_permute"(%r#1) {
      channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>,
      source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<1024xf32>) -> tensor<1024xf32>
    return %moved : tensor<1024xf32>
  }
}
"""


def test_report_counts_trips_axes_and_traffic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "loop.mlir"
    file.write_text(LOOP)
    code, out, _ = run(capsys, "report", str(file), "--topology", "h200:1x8", "--json")
    printed = json.loads(out)
    assert code == 0 and printed["devices"] == 8
    reduce, permute = printed["collectives"]
    assert (reduce["kind"], reduce["axes"], reduce["trips"], reduce["loop_depth"]) == ("all-reduce", ["data"], 5, 1)
    assert (reduce["payload_bytes"], reduce["executed_bytes"]) == (4096, 5 * 4096)
    assert reduce["executed_time_s"] == pytest.approx(5 * reduce["time_s"])
    assert (permute["kind"], permute["axes"], permute["trips"]) == ("collective-permute", ["model"], 1)
    assert re.search(r"loop\.mlir:\d+:\d+", reduce["source"])
    matrix = np.array(printed["matrix_bytes"])
    assert matrix[0, 2] == 5 * 1.5 * 4096 and matrix[0, 1] == 4096 and matrix[2, 1] == 0
    assert printed["totals"]["by_axis"]["data"]["executed_bytes"] == 5 * 4096


ONE_REDUCTION = """HloModule step, is_scheduled=true, num_partitions=COUNT

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %r = f32[4]{0} all-reduce(%p), channel_id=1, replica_groups=GROUPS, use_global_device_ids=true, to_apply=%add
}
"""


def test_a_device_that_the_module_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged id made the matrix larger than memory."""
    file = tmp_path / "step.hlo"
    file.write_text(ONE_REDUCTION.replace("COUNT", "4").replace("GROUPS", "{{4294967296,1,2,3}}"))
    code, out, _ = run(capsys, "report", str(file), "--json")
    printed = json.loads(out)
    assert code == 0 and printed["devices"] == 4 and printed["collectives"] == []
    assert any("4294967296, but the module has 4" in remark for remark in printed["remarks"]), printed["remarks"]


def test_matrices_of_many_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "step.hlo"
    file.write_text(ONE_REDUCTION.replace("COUNT", "100000").replace("GROUPS", "{{0,99999}}"))
    code, out, _ = run(capsys, "report", str(file), "--json")
    printed = json.loads(out)
    assert code == 0 and printed["devices"] == 100_000 and printed["matrix_bytes"] is None
    assert any("the matrix of 100000 devices is left out" in remark for remark in printed["remarks"])
    code, _, err = run(capsys, "report", str(file), "--matrix", str(tmp_path / "matrix.npy"))
    assert code == 2 and "a matrix of 100000 devices is too large" in err and not (tmp_path / "matrix.npy").exists()


def test_report_against_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "before.mlir", tmp_path / "after.mlir"
    before.write_text(LOOP)
    after.write_text(LOOP.replace("dense<5>", "dense<1>"))
    code, out, _ = run(capsys, "report", str(after), "--vs", str(before), "--json")
    change = json.loads(out)["change"]
    assert code == 0 and change["executed_bytes"]["difference"] == -4 * 4096
    assert change["by_kind"]["all-reduce"]["executed_bytes"]["ratio"] == pytest.approx(0.2)


HLO = """HloModule m, is_scheduled=true, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

%body (t: (s32[], f32[256])) -> (s32[], f32[256]) {
  %t = (s32[], f32[256]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %x = f32[256]{0} get-tuple-element(%t), index=1
  %one = s32[] constant(1)
  %n = s32[] add(%i, %one)
  %s = f32[256]{0} all-reduce-start(%x), GLOBAL, replica_groups={{0,1},{2,3}}, to_apply=%add
  %f = f32[256]{0} fusion(%x), kind=kLoop, calls=%add
  %d = f32[256]{0} all-reduce-done(%s)
  ROOT %r = (s32[], f32[256]) tuple(%n, %d)
}

%cond (t: (s32[], f32[256])) -> pred[] {
  %t = (s32[], f32[256]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %k = s32[] constant(7)
  ROOT %l = pred[] compare(%i, %k), direction=LT
}

ENTRY %main (p: (s32[], f32[256])) -> f32[1024] {
  %p = (s32[], f32[256]) parameter(0)
  %w = (s32[], f32[256]) while(%p), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"7"}}
  %y = f32[256]{0} get-tuple-element(%w), index=1
  ROOT %g = f32[1024]{0} all-gather(%y), GLOBAL, replica_groups={{0,1,2,3}}, dimensions={0}
}
""".replace("GLOBAL", "channel_id=1, use_global_device_ids=true")


def test_report_of_optimised_hlo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "step.hlo"
    file.write_text(HLO)
    code, out, _ = run(capsys, "report", str(file), "--topology", "h100:1x4", "--json")
    collectives = {each["kind"]: each for each in json.loads(out)["collectives"]}
    assert code == 0 and json.loads(out)["form"] == "hlo"
    assert (collectives["all-reduce"]["trips"], collectives["all-gather"]["payload_bytes"]) == (7, 4096)
    exposed = [each["exposed_s"] for each in collectives.values()]
    assert json.loads(out)["totals"]["exposed_time_s"] == pytest.approx(sum(exposed)) and min(exposed) > 0


def test_mesh_names_axes_of_hlo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "step.hlo"
    file.write_text(HLO)
    _, out, _ = run(capsys, "report", str(file), "--mesh", "data=2,model=2", "--json")
    collectives = {each["kind"]: each["axes"] for each in json.loads(out)["collectives"]}
    assert collectives == {"all-reduce": ["model"], "all-gather": ["data", "model"]}
    assert run(capsys, "report", str(file), "--mesh", "data:2")[0] == 2


def test_report_refuses_and_remarks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "loop.mlir"
    file.write_text(LOOP)
    code, out, err = run(capsys, "report", str(file), "--topology", "h200:1x4")
    assert code == 2 and out == "" and "8 devices" in err
    file.write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }")
    code, out, _ = run(capsys, "report", str(file))
    assert code == 0 and "contains no collective" in out
    assert run(capsys, "report", str(tmp_path / "none.mlir"))[0] != 0


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    bars, heat, curve, dots = (tmp_path / f"{name}.{ending}" for name in ("bars", "heat", "curve", "dots"))
    assert run(capsys, "estimate", *SMALL, "--pp", "4", "--tp", "2", "--topology", "h200:4x8", "--plot", str(bars),
               "--plot-traffic", str(heat))[0] == 0
    draw = ["collective", "all-gather", "--bytes", "1", "--topology", "h100:1x8", "--plot"]
    assert run(capsys, *draw, str(curve))[0] == 0
    assert run(capsys, "estimate", *SMALL, "--topology", "h200:1x8", "--search", "--plot", str(dots))[0] == 0
    start = b"\x89PNG" if ending == "png" else b"<?xml"
    first = [file.read_bytes() for file in (bars, heat, curve, dots)]
    assert all(content.startswith(start) for content in first)
    run(capsys, *draw, str(curve))
    assert curve.read_bytes() == first[2]
    assert run(capsys, *draw, "x.gif")[0] == 2
