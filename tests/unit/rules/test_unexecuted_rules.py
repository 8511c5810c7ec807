"""Rules that were neither executed nor proved: ``rules check`` fails, and ``opt`` says once that it applied one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.cli.main import main

WRONG = """import "natives.hlopat";

/// AG(broadcast(s)) = broadcast(s)
///
/// Legal where the operand is equal on all devices, which nothing asks.
rule gather-of-broadcast {
  match {
    %b = stablehlo.broadcast_in_dim(%a) {broadcast_dimensions = $bd};
    root %g = stablehlo.all_gather(%b) {all_gather_dim = $d};
  }
  types { same(%b, %g); }
  floats exact;
  rewrite {
    %r = stablehlo.broadcast_in_dim(%a) {broadcast_dimensions = $bd} -> type(%g);
    replace %g with %r;
    erase %b;
  }
}
"""
RIGHT = """import "natives.hlopat";

/// AR(a) - AR(b) = AR(a - b)
///
/// Legal.
rule difference {
  match {
    sole %ra = stablehlo.all_reduce(%a) {channel_handle = ?$c} computation reduces(sum);
    sole %rb = stablehlo.all_reduce(%b) computation reduces(sum);
    root %s = stablehlo.subtract(%ra, %rb);
  }
  types { same(%a, %b, %s); }
  floats reassociates;
  legal { same_groups(%ra, %rb); }
  rewrite {
    %t = stablehlo.subtract(%a, %b) like %s;
    %r = stablehlo.all_reduce(%t) {channel_handle = $c} like %ra;
    replace %s with %r;
    erase %ra, %rb;
  }
}
"""
GATHER = ('%g{0} = "stablehlo.all_gather"(%b{0}) <{{all_gather_dim = 0 : i64, channel_handle = '
          "#stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, "
          "use_global_device_ids}}> : (tensor<2xf32>) -> tensor<4xf32>\n")
BROADCAST = "%b{0} = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2xf32>\n"
PROGRAM = ("module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\n"
           "func.func @main() -> (tensor<4xf32>, tensor<4xf32>) {\n%p = stablehlo.partition_id : tensor<ui32>\n"
           "%f = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>\n"
           + "".join(BROADCAST.format(k) + GATHER.format(k) for k in (0, 1))
           + "return %g0, %g1 : tensor<4xf32>, tensor<4xf32>\n}\n}\n")
REDUCED = ('%r{0} = "stablehlo.all_reduce"(%{0}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, '
           "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}}> ({{^bb0(%p: tensor<f32>, "
           "%q: tensor<f32>): %s = stablehlo.add %p, %q : tensor<f32> stablehlo.return %s : tensor<f32>}}) : "
           "(tensor<4xf32>) -> tensor<4xf32>\n")
DIFFERENCE = ("module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\n"
              "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {\n"
              + REDUCED.format("x") + REDUCED.format("y")
              + "%d = stablehlo.subtract %rx, %ry : tensor<4xf32>\nreturn %d : tensor<4xf32>\n}\n}\n")


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "wrong.hlopat"
    path.write_text(WRONG)
    return str(path)


def test_rules_check_fails_where_nothing_is_known(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("z3")
    assert main(["rules", "check", wrong]) == 1
    assert "    neither executed nor proved: unknown: %r is not shown to equal %g" in capsys.readouterr().out
    assert main(["rules", "check", wrong, "--json"]) == 1
    [row] = json.loads(capsys.readouterr().out)
    assert row["results"][0]["executed"] == 0 and row["results"][0]["undecided"].startswith("unknown: ")
    assert main(["rules", "check", "--static", wrong]) == 0


def test_a_rule_that_is_proved_needs_no_execution(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("z3")
    path = tmp_path / "right.hlopat"
    path.write_text(RIGHT)
    assert main(["rules", "check", str(path), "--programs=0"]) == 0
    assert "applies to 0 of 0 programs, none was executed" in capsys.readouterr().out
    path.write_text(RIGHT.replace(" same_groups(%ra, %rb); ", " "))
    assert main(["rules", "check", str(path), "--programs=0"]) == 1


def test_opt_says_once_that_an_unproved_rule_was_applied(wrong: str, tmp_path: Path,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("z3")
    source = tmp_path / "in.mlir"
    source.write_text(PROGRAM)
    assert main(["opt", str(source), f"--rules={wrong}", "-o", str(tmp_path / "out.mlir")]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{wrong}:6: warning: rule gather-of-broadcast was applied and is not proved (unknown: ")


def test_opt_says_nothing_of_others(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Proved, shipped, or not applied."""
    pytest.importorskip("z3")
    right, source = tmp_path / "right.hlopat", tmp_path / "in.mlir"
    right.write_text(RIGHT)
    source.write_text(DIFFERENCE)
    for rules in (str(right), "collectives", wrong):
        assert main(["opt", str(source), f"--rules={rules}", "-o", str(tmp_path / "out.mlir")]) == 0
        assert capsys.readouterr().err == ""
        assert ("subtract %arg0" in (tmp_path / "out.mlir").read_text()) == (rules != wrong)
