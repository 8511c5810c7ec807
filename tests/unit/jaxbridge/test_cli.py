"""The commands compile, verify and run: exit codes, JSON, and one line for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.cli.main import guarded

GOOD = """module { func.func @main(%a: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = "stablehlo.all_reduce"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32> }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}
    : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32> } }
"""
WRONG = GOOD.replace("[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.mlir").write_text(GOOD)
    (tmp_path / "wrong.mlir").write_text(WRONG)
    (tmp_path / "other.mlir").write_text("module { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> "
                                         "{ return %a : tensor<2xf32> } }")
    return tmp_path


def test_compile_prints_a_table_or_json_or_hlo(files: Path, capsys: pytest.CaptureFixture[str]):
    assert guarded(["compile", "good.mlir", "--target", "cpu:4"]) == 0
    shown = capsys.readouterr().out
    assert "executed B" in shown and "all-reduce         32      1          32  2 x 2" in shown
    assert guarded(["compile", "good.mlir", "--target", "cpu:4", "--json", "-o", "out.json"]) == 0
    printed = json.loads((files / "out.json").read_text())
    assert printed["executed_bytes"] == {"all-reduce": 32}
    assert guarded(["compile", "good.mlir", "--target", "cpu:4", "--emit-hlo"]) == 0
    assert capsys.readouterr().out.startswith("HloModule")


def test_verify_and_run(files: Path, capsys: pytest.CaptureFixture[str]):
    assert guarded(["verify", "good.mlir", "good.mlir", "--devices", "4"]) == 0
    assert "1 outputs equal on 4 devices" in capsys.readouterr().out
    assert guarded(["verify", "good.mlir", "wrong.mlir", "--json"]) == 3
    printed = json.loads(capsys.readouterr().out)
    assert (printed["equal"], printed["outputs"][0]["equal"]) == (False, False)
    assert guarded(["verify", "good.mlir", "wrong.mlir", "--tol", "10"]) == 0
    assert guarded(["run", "good.mlir", "--json", "-o", "out.npz", "--seed", "3"]) == 0
    assert (files / "out.npz").exists()


@pytest.mark.parametrize(("words", "code", "sentence"), [
    (["compile", "good.mlir", "--target", "h300:8"], 2, 'unknown target "h300:8"; did you mean "h200"?'),
    (["compile", "good.mlir", "--target", "cpu:8"], 2, "for 4 devices but target cpu:8 has 8; use --target cpu:4"),
    (["compile", "none.mlir", "--target", "cpu:8"], 2, "none.mlir: no such file"),
    (["compile", "good.mlir", "--target", "cpu:4", "--xla-flag", "oops"], 2, "is not NAME=VALUE"),
    (["verify", "good.mlir", "other.mlir"], 2, "argument 0 is f32[4,2] in good.mlir and f32[2] in other.mlir"),
    (["verify", "good.mlir", "wrong.mlir", "--devices", "8"], 2, "--devices 8 does not fit the module"),
    (["run", "good.mlir", "--devices", "2"], 2, "which is for 4 devices"),
])
def test_mistakes_are_one_line(files: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int,
                               sentence: str):
    assert guarded(words) == code
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


TWICE = GOOD.replace("  return %r", """  %q = "stablehlo.all_reduce"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32> }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}
    : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %t = stablehlo.subtract %r, %q : tensor<4x2xf32>
  return %t""")


def test_opt_for_a_target_writes_the_better_module(files: Path, capsys: pytest.CaptureFixture[str]):
    """XLA merges two equal reductions itself, so nothing is gained by merging them before."""
    (files / "twice.mlir").write_text(TWICE)
    words = ["opt", "twice.mlir", "--pass=collective-cse", "--target=cpu:4", "--against=xla"]
    assert guarded([*words, "-o", "out.mlir"]) == 0
    said = capsys.readouterr().err
    assert said.startswith("for cpu:4")
    assert "your own module is compiled: XLA alone does as well; --keep=always writes the result" in said
    assert (files / "out.mlir").read_text().count("stablehlo.all_reduce") == 2
    assert guarded([*words, "--keep=always", "-o", "out.mlir"]) == 0
    assert (files / "out.mlir").read_text().count("stablehlo.all_reduce") == 1


def test_comparing_needs_a_target(files: Path, capsys: pytest.CaptureFixture[str]):
    for flag in ("--against=xla", "--keep=better"):
        assert guarded(["opt", "good.mlir", "--pass=cse", flag]) == 2
        assert "no target was given; add --target=h200:1x8, say" in capsys.readouterr().err


def test_compile_prints_two_modules_side_by_side(files: Path, capsys: pytest.CaptureFixture[str]):
    assert guarded(["compile", "good.mlir", "--target=cpu:4", "--against=good.mlir"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["for", "cpu:4", "calls", "executed", "B",
                                                               "temporaries", "B", "XLA's", "time", "s"]
    assert guarded(["compile", "good.mlir", "--target=cpu:4", "--against=good.mlir", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["with_code"] and made["xla_alone"]["executed_bytes"] == made["rewritten"]["executed_bytes"] == 32
