"""``hlorewrite validate``: forms of modules, verdicts and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.cli.main import main
from hlorewrite.errors import InputError

TEXT = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<3.0> : tensor<4xf32>
  %r = stablehlo.divide %x, %c : tensor<4xf32>
  return %r : tensor<4xf32>
}"""
HLO = """HloModule m
ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %c = f32[] constant(3)
  %b = f32[4]{0} broadcast(%c), dimensions={}
  ROOT %r = f32[4]{0} divide(%p, %b)
}
"""


def written(folder: Path, name: str, text: str) -> str:
    """A file."""
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(("other", "code", "said"), [
    (TEXT.replace("%r", "%s"), 0, "proved ("),
    (HLO, 0, "proved ("),
    (TEXT.replace("divide", "multiply").replace("3.0", "0.333333343"), 0, "proved up to rounding of constants ("),
    (TEXT.replace("divide", "power"), 3, "differs: output 0["),
    (TEXT.replace("stablehlo.divide %x, %c", "stablehlo.custom_call @mine(%x, %c)").replace(
        ": tensor<4xf32>\n  return", ": (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n  return"), 1, "unknown: ")])
def test_verdicts_and_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str], other: str, code: int, said: str):
    first, second = written(tmp_path, "a.mlir", TEXT), written(tmp_path, "b.mlir", other)
    assert main(["validate", first, second]) == code
    assert capsys.readouterr().out.startswith(said)


def test_equal_on_inputs_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    shape = "func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {\n"
    cubed = shape + ("  %y = stablehlo.multiply %x, %x : tensor<4xi32>\n  %r = stablehlo.xor %y, %x : tensor<4xi32>\n"
                     "  return %r : tensor<4xi32>\n}")
    other = shape + ("  %y = stablehlo.multiply %x, %x : tensor<4xi32>\n  %o = stablehlo.or %y, %x : tensor<4xi32>\n"
                     "  %a = stablehlo.and %y, %x : tensor<4xi32>\n  %r = stablehlo.subtract %o, %a : tensor<4xi32>\n"
                     "  return %r : tensor<4xi32>\n}")
    first, second = written(tmp_path, "a.mlir", cubed), written(tmp_path, "b.mlir", other)
    assert main(["validate", first, second, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["inputs"]) == ("equal on inputs", 7)
    assert main(["validate", first, second, "--inputs", "0"]) == 1


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        main(["validate", str(tmp_path / "none.mlir"), str(tmp_path / "none.mlir")])
