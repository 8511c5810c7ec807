"""The writer of CHECK lines: what it writes, filecheck accepts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hlorewrite.testing import update_checks as tool

SOURCE = """\
// RUN: %hlorewrite opt %s --pass=cse | %filecheck %s
// What this file is about.

// CHECK: something old
// CHECK-NOT: stablehlo.divide
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  %1 = stablehlo.add %x, %x : tensor<4xf32>
  %2 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}>
    : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}
"""


def test_written_checks_hold(tmp_path: Path) -> None:
    """Names from ops, brackets escaped, hand-written NOT kept, a second run changes nothing."""
    path = tmp_path / "a.mlir"
    path.write_text(SOURCE)
    new = tool.updated(SOURCE, path)
    assert "something old" not in new and "// What this file is about." in new and "CHECK-NOT: stablehlo.divide" in new
    assert "// CHECK-LABEL: func.func @main" in new
    assert "// CHECK-NEXT: %[[ADD_0:[A-Za-z0-9_]+]] = stablehlo.add %[[ARG_0]], %[[ARG_0]] : tensor<4xf32>" in new
    assert r"dense<{{\[\[}}0, 1]]>" in new
    assert "// CHECK-NEXT: return %[[ADD_0]], %[[COLLECTIVE_PERMUTE_0]] :" in new
    assert new.index("CHECK-LABEL") < new.index("func.func @main(%x") and new.count("stablehlo.add %x") == 2
    path.write_text(new)
    assert tool.updated(new, path) == new
    command = f"{sys.executable} -m hlorewrite opt {path} --pass=cse | {Path(sys.executable).parent}/filecheck {path}"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("text", "why"), [
    ("// RUN: not %hlorewrite opt %s | %filecheck %s\nmodule {}\n", "no RUN line"),
    ("// RUN: %hlorewrite opt %s --pass=nope | %filecheck %s\nmodule {}\n", 'unknown pass "nope"'),
    ("module {}\n", "no RUN line"),
])
def test_files_that_are_left_alone(text: str, why: str, tmp_path: Path) -> None:
    """A failing command must not become the expectation."""
    path = tmp_path / "a.mlir"
    path.write_text(text)
    with pytest.raises(tool.CannotUpdate, match=why):
        tool.updated(text, path)
    assert tool.main([str(path)]) == 1 and path.read_text() == text


def test_parts_whose_functions_share_a_name_get_checks_of_their_own(tmp_path: Path) -> None:
    """The second @main must not get the checks of the last one, nor the first one's."""
    part = "func.func @main(%x: tensor<KIND>) -> tensor<KIND> {\n  return %x : tensor<KIND>\n}\n"
    text = ("// RUN: %hlorewrite opt %s --pass=cse --split-input-file | %filecheck %s\n"
            + part.replace("KIND", "4xf32") + "// -----\n" + part.replace("KIND", "8xf32"))
    path = tmp_path / "a.mlir"
    path.write_text(text)
    lines = tool.updated(text, path).splitlines()
    returns = [line for line in lines if line.startswith("// CHECK-NEXT: return")]
    assert [line.split(" : ")[1] for line in returns] == ["tensor<4xf32>", "tensor<8xf32>"]
    assert lines.index(returns[0]) < lines.index("// -----") < lines.index(returns[1])
