"""Modules and HLO that others wrote: each comes out right, or is refused in one line with exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hlorewrite.cli.main import guarded

pytestmark = pytest.mark.usefixtures("oracle_in_process")
ROOT = Path(__file__).resolve().parents[3]
FOREIGN = ROOT / "tests" / "programs" / "foreign"
EXECUTED = [
    "collective_in_composite.mlir", "empty_groups_are_all_devices.mlir", "gather_by_table_operand.mlir",
    "gather_of_one_that_grows.mlir", "narrow_integer_convolution.mlir", "second_public_function.mlir",
    "sharding_of_a_module_mesh.mlir", "reducer_that_captures.mlir", "groups_by_axis_names.mlir",
    "nested_modules_of_equal_names.mlir"]


def report(name: str, capsys: pytest.CaptureFixture[str]) -> dict:
    """What ``report --json`` prints of a program."""
    capsys.readouterr()
    assert guarded(["report", str(FOREIGN / name), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", EXECUTED)
@pytest.mark.parametrize("pipeline", [("-O", "comm"), ("-O", "time", "--topology=h200:1x8")],
                         ids=lambda words: words[1])
def test_rewritten_modules_of_others_compute_the_same(name: str, pipeline: tuple[str, ...], tmp_path: Path,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "made.mlir"
    words = ["opt", str(FOREIGN / name), *pipeline, "--check=interp", "--no-reproducer", "-o", str(made)]
    assert guarded(words) == 0, capsys.readouterr().err
    assert made.stat().st_size


@pytest.mark.parametrize(("name", "kinds", "executed"), [
    ("not_indented.hlo", ["all-reduce"], 32),
    ("collective_in_composite.mlir", ["all-reduce"], 64),
    ("empty_groups_are_all_devices.mlir", ["all-reduce"], 64),
    ("ragged_all_to_all_custom_call.mlir", ["all-to-all", "all-reduce"], 64),
    ("second_public_function.mlir", ["all-reduce"], 64),
    ("groups_by_axis_names.mlir", ["all-reduce"], 16),
    ("op_of_an_unknown_dialect.mlir", ["all-reduce"], 16)])
def test_collectives_of_others_are_counted(name: str, kinds: list[str], executed: int,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    found = report(name, capsys)
    assert [each["kind"] for each in found["collectives"]] == kinds
    assert found["totals"]["executed_bytes"] == executed


def test_what_is_not_counted_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No note says that there is no collective where one was left out."""
    assert ["left out: its shape is not static" in each for each in report("all_reduce_of_dynamic_size.mlir", capsys)[
        "remarks"]] == [True]
    assert "ops of other dialects may communicate and are not counted: my.op (1)" in report(
        "op_of_an_unknown_dialect.mlir", capsys)["remarks"]
    text = """sdy.mesh @m = <["x"=2]>
      func.func @main(%x: tensor<8xf32>, %t: !stablehlo.token) -> tensor<8xf32> {
        %0 = stablehlo.custom_call @nccl_exchange(%x) : (tensor<8xf32>) -> tensor<8xf32>
        %1 = stablehlo.custom_call @Sharding(%0) : (tensor<8xf32>) -> tensor<8xf32>
        %2 = sdy.reshard %1 <@m, [{"x"}]> : tensor<8xf32>
        %3 = "stablehlo.send"(%2, %t) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>} :
            (tensor<8xf32>, !stablehlo.token) -> !stablehlo.token
        return %2 : tensor<8xf32> }"""
    (tmp_path / "m.mlir").write_text(text)
    said = report(str(tmp_path / "m.mlir"), capsys)["remarks"]
    assert said == [
        "custom calls that may communicate are not counted: nccl_exchange (1)",
        "messages between devices are not counted: stablehlo.send (1)",
        "ops of Shardy that exchange shards are not counted; XLA lowers them when it partitions: sdy.reshard (1)"]


def test_what_is_not_counted_of_hlo_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages and custom calls between devices; those to the host and products of a library are none."""
    (tmp_path / "m.hlo").write_text("""HloModule m, is_scheduled=true, num_partitions=4

ENTRY %main (p: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8]{1,0} parameter(0)
  %t = token[] after-all()
  %s = (f32[8,8]{1,0}, u32[], token[]) send(%p, %t), channel_id=7, is_host_transfer=false
  %d = token[] send-done(%s), channel_id=7
  %h = (f32[8,8]{1,0}, u32[], token[]) recv(%d), channel_id=8, is_host_transfer=true
  %g = f32[8,8]{1,0} custom-call(%p, %p), custom_call_target="__cublas$gemm"
  ROOT %c = f32[8,8]{1,0} custom-call(%g), custom_call_target="nccl_exchange"
}
""")
    assert report(str(tmp_path / "m.hlo"), capsys)["remarks"] == [
        "custom calls that may communicate are not counted: nccl_exchange (1)",
        "messages between devices are not counted: send (1)"]


@pytest.mark.parametrize(("words", "name", "sentence"), [
    (["report"], "transposed_by_absent_axes.hlo", "T(5,6) is not an order of the dimensions"),
    (["timeline", "--target=h200:1x8"], "transposed_by_absent_axes.hlo", "T(5,6) is not an order of the dimensions"),
    (["audit", "--target=h200:1x8"], "device_twice_in_a_group.hlo", "device 0 appears twice in replica groups"),
    (["report"], "device_twice_in_a_group.hlo", "device 0 appears twice in replica groups"),
    (["report"], "partitions_that_are_no_number.mlir", 'mhlo.num_replicas is "", which is not a number'),
    (["report"], "mesh_of_a_billion.mlir", "the module is for 1000000000 devices"),
    (["lint"], "transposed_by_absent_axes.hlo", "transposed_by_absent_axes.hlo: T(5,6) is not an order"),
    (["opt"], "not_indented.hlo", "is HLO text, but this command reads StableHLO"),
    (["opt", "-O", "comm", "--no-reproducer"], "mesh_of_a_billion.mlir", "the module is for 1000000000 devices"),
    (["opt", "-O", "comm", "--no-reproducer"], "op_of_an_unknown_dialect.mlir", "use --allow-unregistered-dialect"),
    (["opt", "-O", "comm", "--no-reproducer"], "mpmd_plain_mesh_tensor.mlir", "does not say its task and stage"),
    (["opt", "-O", "comm", "--check=interp", "--no-reproducer"], "ragged_all_to_all_custom_call.mlir",
     'cannot run stablehlo.custom_call "ragged_all_to_all"'),
    (["opt", "-O", "comm", "--check=interp", "--no-reproducer", "--allow-unregistered-dialect"],
     "op_of_an_unknown_dialect.mlir", "cannot run my.op"),
    (["opt", "-O", "comm", "--check=interp", "--no-reproducer"], "all_reduce_of_dynamic_size.mlir",
     "tensors of static shape"),
    (["opt", "-O", "comm", "--check=interp", "--no-reproducer"], "hangs_by_device_id.mlir",
     "hangs on any inputs: a branch or a trip count depends on the device's id")])
def test_what_cannot_be_done_is_one_line(words: list[str], name: str, sentence: str,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded([words[0], str(FOREIGN / name), *words[1:]]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert len(said) == 1 and sentence in said[0] and "unexpected" not in said[0]


@pytest.mark.parametrize("count", [0, -1])
def test_no_devices_at_all(count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Modules and HLO for less than one device are refused before a count is divided by."""
    (tmp_path / "m.mlir").write_text(f"module attributes {{mhlo.num_replicas = {count} : i32, mhlo.num_partitions = "
                                     f"{count} : i32}} {{ func.func @main() {{ return }} }}")
    (tmp_path / "m.hlo").write_text("HloModule m, replica_count=0\n\nENTRY %e (p: f32[2]) -> f32[2] {\n"
                                    "  ROOT %p = f32[2] parameter(0)\n}\n")
    for name, said in (("m.mlir", f"mhlo.num_replicas is {count}, and a module runs on at least one device"),
                       ("m.hlo", "the module runs on 0 devices; 1 to ")):
        assert guarded(["report", str(tmp_path / name)]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(path.name for path in FOREIGN.glob("*.mlir")))
def test_traces_of_modules_of_others_can_be_viewed(name: str, tmp_path: Path,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    """Custom calls that communicate are among the collectives of a trace; a module that is refused says why in one."""
    run = str(tmp_path / "run")
    words = ["opt", str(FOREIGN / name), "-O", "comm", f"--trace={run}", "--allow-unregistered-dialect",
             "--topology=h200:1x8", "--no-reproducer", "-o", str(tmp_path / "made.mlir")]
    assert guarded(words) in (0, 2), capsys.readouterr().err
    for shown in (["--json"], ["-o", str(tmp_path / "page.html")]):
        assert guarded(["view", run, *shown]) == 0, capsys.readouterr().err
    assert "unexpected" not in capsys.readouterr().err


def test_no_budget_bounds_what_has_no_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A collective of dynamic size stays in its loop: outside, nothing says how much would be kept."""
    made = tmp_path / "made.mlir"
    words = ["opt", str(FOREIGN / "all_reduce_of_dynamic_size.mlir"), "-O", "comm", "--remarks=all", "-o", str(made)]
    assert guarded(words) == 0
    loop = made.read_text().partition("stablehlo.while")[2]
    assert "all_reduce" in loop and "no budget could bound it" in capsys.readouterr().err


def test_a_table_outside_the_manual_computation_is_a_constant(tmp_path: Path,
                                                              capsys: pytest.CaptureFixture[str]) -> None:
    """It enters whole, so each device's index is known, and the gather becomes a permute."""
    made = tmp_path / "made.mlir"
    assert guarded(["opt", str(FOREIGN / "gather_by_table_operand.mlir"), "-O", "comm", "--check=interp", "-o",
                    str(made)]) == 0, capsys.readouterr().err
    text = made.read_text()
    assert "collective_permute" in text and "all_gather" not in text


def test_hlo_that_is_not_as_xla_prints_it_goes_through_its_parser(tmp_path: Path,
                                                                  capsys: pytest.CaptureFixture[str]) -> None:
    """An instruction over two lines; and the line and column where XLA's parser stops."""
    text = (FOREIGN / "not_indented.hlo").read_text().replace("all-reduce(p), ", "all-reduce(p),\n    ")
    (tmp_path / "m.hlo").write_text(f"// a comment\n{text}")
    assert len(report(str(tmp_path / "m.hlo"), capsys)["collectives"]) == 1
    (tmp_path / "m.hlo").write_text(text.replace("ROOT t = f32[8] negate", "ROOT t = f32[8] negat"))
    for words in (["report"], ["lint"], ["audit", "--target=h200:1x8"]):
        assert guarded([words[0], str(tmp_path / "m.hlo"), *words[1:]]) == 2
        assert "m.hlo:13:17: XLA's parser of HLO stops here (expects opcode but sees: negat" in capsys.readouterr().err


def test_a_text_on_which_xla_aborts_is_one_line() -> None:
    """A dimension of -1 ends XLA's parser with a failed check and a stack; the command says whose crash it is."""
    done = subprocess.run([sys.executable, "-m", "hlorewrite", "report", str(FOREIGN / "aborts_xla_parser.hlo")],
                          capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    if "XLA crashed" in done.stderr:  # this release does
        assert "aborts_xla_parser.hlo: while it was read: XLA crashed (SIGABRT); pass HLO as XLA" in done.stderr
    assert done.returncode == 2 and done.stderr.count("\n") == 1
