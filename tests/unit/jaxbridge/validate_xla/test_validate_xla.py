"""Dumps of XLA: wrong passes are refuted with values, right ones proved, and HLO is read for what it computes."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from hlorewrite.checks.reference.program import prepare
from hlorewrite.checks.translation_validation.equivalence import Certainty, prove
from hlorewrite.cli.main import main
from hlorewrite.errors import InputError, UsageError
from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.validate_xla import chain
from hlorewrite.jaxbridge.validate_xla.chain import validate_dump
from hlorewrite.jaxbridge.validate_xla.compile_dump import compile_with_dump
from hlorewrite.jaxbridge.validate_xla.read_hlo import read_hlo

DUMPS = Path(__file__).parent / "dumps"
SECONDS = 10.0
"""What a wrong pass of a small dump may take to be refuted."""


@pytest.mark.parametrize(("dump", "wrong"), [
    ("nested_slices", "simplification/algsimp"),
    ("code_motion", "collective-optimizations/while-loop-all-reduce-code-motion")])
def test_a_wrong_pass_is_named_with_values(dump: str, wrong: str):
    started = time.monotonic()
    found = validate_dump(DUMPS / dump)
    assert time.monotonic() - started < SECONDS
    assert found.verdict is Certainty.DIFFERS
    row = next(row for row in found.rows if row.answer.verdict is Certainty.DIFFERS)
    assert row.passes == (wrong,)
    assert row.answer.example is not None
    assert row.instruction
    assert all(other.answer.proved for other in found.rows if other is not row)


def test_a_moved_collective_and_the_source_line_are_shown(capsys: pytest.CaptureFixture[str]):
    assert main(["validate-xla", str(DUMPS / "code_motion")]) == 3
    assert "%all-reduce.0 left %region_0.0_spmd; %all-reduce.4 is new in %main.0_spmd" in capsys.readouterr().out
    assert main(["validate-xla", str(DUMPS / "nested_slices"), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["passes"][0]["source"] == "mini2.py:9:31"
    assert found["passes"][0]["example"]["before"] != found["passes"][0]["example"]["after"]


def test_passes_that_are_right_are_proved_at_once(tmp_path: Path):
    for number in ("0006", "0007"):
        for file in (DUMPS / "nested_slices").glob(f"*.{number}.*"):
            shutil.copy(file, tmp_path)
    found = validate_dump(tmp_path)
    assert (found.verdict, found.whole, len(found.rows)) == (Certainty.PROVED, True, 1)


def test_a_result_that_takes_the_memory_of_an_argument(tmp_path: Path):
    body = "ENTRY %main (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n  ROOT %r = f32[4]{0} negate(%p)\n}\n"
    shared = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n\n"
    (tmp_path / "module_0001.m.0001.simplification.after_cse.txt").write_text(f"HloModule m\n\n{body}")
    (tmp_path / "module_0001.m.0002.simplification.after_dce.txt").write_text(shared + body)
    found = validate_dump(tmp_path)
    assert found.verdict is Certainty.UNKNOWN
    assert "takes the memory of argument 0" in found.rows[0].answer.reason


def hlo(*lines: str, of: str = "f32[2,3]"):
    """A module of HLO instructions that compute on one argument."""
    text = f"HloModule m\n\nENTRY %main (p: {of}) -> f32[] {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
    return read_hlo(parse_hlo(text), "m.hlo")[0]


def computed(module: object, array: np.ndarray) -> np.ndarray:
    """What a module computes."""
    return prepare(module).run([[array]]).outputs[0][0]  # type: ignore[arg-type]


def test_a_bitcast_reads_memory_in_the_order_of_its_layouts():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    turned = hlo("%p = f32[2,3]{1,0} parameter(0)", "ROOT %r = f32[3,2]{0,1} bitcast(%p)")
    assert (computed(turned, array) == array.T).all()
    flat = hlo("%p = f32[2,3]{0,1} parameter(0)", "ROOT %r = f32[6]{0} bitcast(%p)")
    assert (computed(flat, array) == array.T.reshape(-1)).all()


def test_a_fusion_computes_what_it_calls():
    text = """HloModule m
%f (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%a)
}
ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %c = f32[4]{0} copy(%p)
  ROOT %r = f32[4]{0} fusion(%c), kind=kLoop, calls=%f
}
"""
    fused = read_hlo(parse_hlo(text), "m.hlo")[0]
    plain = hlo("%p = f32[4]{0} parameter(0)", "ROOT %r = f32[4]{0} negate(%p)", of="f32[4]")
    assert prove(fused, plain).verdict is Certainty.PROVED
    other = hlo("%p = f32[4]{0} parameter(0)", "ROOT %r = f32[4]{0} abs(%p)", of="f32[4]")
    assert prove(fused, other).verdict is Certainty.UNKNOWN


def test_a_step_is_compiled_and_its_passes_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    module = tmp_path / "m.mlir"
    module.write_text("""func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %1 = stablehlo.dot_general %0, %x, contracting_dims = [0] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) ->
        tensor<4x4xf32>
      return %1 : tensor<4x4xf32> }""")
    assert main(["validate-xla", str(module), "--target", "cpu:1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "proved"
    with pytest.raises(UsageError, match="to compile a module, --target is needed"):
        main(["validate-xla", str(module)])
    for target, said in (("h200:1x9", "the module is for 8 devices but target h200:1x9 has 9"), ("h9000:1x8", "h9000")):
        sharded = tmp_path / "sharded.mlir"
        sharded.write_text(MANUAL.replace("num_partitions = 2", "num_partitions = 8").replace('"d"=2', '"d"=8')
                           .replace("tensor<4xf32>", "tensor<16xf32>").replace("[[0, 1]]> : tensor<1x2xi64>",
                                                                              "[[0,1,2,3,4,5,6,7]]> : tensor<1x8xi64>"))
        with pytest.raises(UsageError, match=said):
            main(["validate-xla", str(sharded), "--target", target])
    with pytest.raises(InputError, match="no such file"):
        main(["validate-xla", str(tmp_path / "missing.mlir")])
    with pytest.raises(InputError, match="contains no dump of XLA's passes"):
        main(["validate-xla", str(tmp_path)])


def with_exchanged_operands(dump: Path) -> Path:
    """A dump, as if the partitioner had exchanged the operands of differences."""
    for file in dump.glob("*spmd-cleanup*"):
        text = file.read_text()
        file.write_text(re.sub(r"subtract\((%[\w.\-]+), (%[\w.\-]+)\)", r"subtract(\2, \1)", text))
    return dump


MANUAL = """module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["d"=2]>
  func.func public @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) ->
      (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[<@mesh, [{"d"}]>]
        manual_axes={"d"} (%a: tensor<2xf32>) {
      %1 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %s = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %s : tensor<f32> }) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = stablehlo.subtract %a, %1 : tensor<2xf32>
      sdy.return %2 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}"""


def test_the_partitioner_is_compared_where_each_device_has_its_program(tmp_path: Path):
    dump = compile_with_dump(parse(MANUAL), "cpu:2", tmp_path)
    found = validate_dump(dump)
    assert found.partitioning is not None
    assert (found.verdict, found.partitioning.answer.proved) == (Certainty.PROVED, True)
    wrong = validate_dump(with_exchanged_operands(dump))
    assert wrong.partitioning is not None
    assert wrong.partitioning.answer.verdict is Certainty.DIFFERS
    assert "spmd-partitioner/shardy-xla" in wrong.partitioning.passes


def test_an_update_that_the_partitioner_drops_is_shown():
    """openxla/xla#49118: the start is not clamped before devices ask whether the update is theirs."""
    found = validate_dump(DUMPS / "partitioned_update")
    assert found.partitioning is not None
    assert found.partitioning.passes == ("spmd-partitioner/shardy-xla", "spmd-partitioner/spmd-partitioning")
    assert found.partitioning.answer.verdict is found.verdict is Certainty.DIFFERS
    assert found.partitioning.source == "update.py:12:16"


SHARDED = """module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["d"=2, "t"=2]>
  func.func public @main(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>},
      %w: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"t"}, {}]>}) ->
      (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {"t"}]>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) ->
      tensor<4x4xf32>
    %1 = stablehlo.subtract %0, %x : tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}"""


def test_a_sharded_step_is_compared_across_the_partitioner(tmp_path: Path):
    dump = compile_with_dump(parse(SHARDED), "cpu:4", tmp_path)
    found = validate_dump(dump)
    assert found.partitioning is not None
    assert found.partitioning.answer.verdict in (Certainty.PROVED, Certainty.EQUAL)
    assert not found.partitioning.moved
    wrong = validate_dump(with_exchanged_operands(dump))
    assert wrong.partitioning is not None
    assert wrong.partitioning.answer.verdict is Certainty.DIFFERS


def test_a_partitioner_that_is_too_large_to_execute_leaves_the_verdict(tmp_path: Path,
                                                                       monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chain, "_MOST_ELEMENTS", 0)
    found = validate_dump(compile_with_dump(parse(SHARDED), "cpu:4", tmp_path))
    assert found.partitioning is not None
    assert (found.partitioning.answer.verdict, found.verdict) == (Certainty.UNKNOWN, Certainty.PROVED)
    assert found.partitioning.answer.reason.endswith("not executed: its arguments have 128 elements")
