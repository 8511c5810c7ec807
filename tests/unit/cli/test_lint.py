"""``hlorewrite lint``: exit codes, releases, and what only looks like a form XLA gets wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.cli import lint
from hlorewrite.cli.parser import Parser
from hlorewrite.errors import UsageError
from hlorewrite.hlo.xla_versions import MISCOMPILATIONS

SITUATIONS = Path(__file__).resolve().parents[2] / "oracle" / "xla_situations"


def forms(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The forms lint finds in a file."""
    parser = Parser()
    lint.add_arguments(parser)
    code = lint.run(parser.parse_args([str(path), "--json", *arguments]))
    forms = [hazard["form"] for hazard in json.loads(capsys.readouterr().out)["hazards"]]
    assert code == (1 if forms else 0)
    return forms


def situation(form: str) -> Path:
    """The file of a form."""
    return next(SITUATIONS.rglob(f"{form.lower()}_*.mlir"))


@pytest.mark.parametrize("version, expected", [("0.10.0", {"U2", "U3"}), ("0.10.1", {"X", "W", "U2", "U3"}),
                                            ("0.11.2", {"X", "W", "U2", "U3"}), ("0.12.0", {"W", "U2", "U3"})])
def test_releases(version: str, expected: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each form has releases of its own."""
    assert {form for form in MISCOMPILATIONS if forms(situation(form), capsys, "--jaxlib", version)} == expected


def test_unknown_release() -> None:
    """A release that is none is a usage error."""
    parser = Parser()
    lint.add_arguments(parser)
    with pytest.raises(UsageError, match="not a release of jaxlib"):
        lint.run(parser.parse_args([str(situation("X")), "--jaxlib", "newest"]))


@pytest.mark.parametrize("form, old, new", [
    # the accumulator is read elsewhere: XLA leaves the all-reduce alone
    ("U2", "= stablehlo.add %iterArg_1, %6 : tensor<4xf32>",
     "= stablehlo.add %iterArg_1, %6 : tensor<4xf32>\n        %seen = stablehlo.tanh %iterArg_1 : tensor<4xf32>"),
    # not a sum
    ("U3", "stablehlo.add %arg8, %arg9 : tensor<f32>", "stablehlo.maximum %arg8, %arg9 : tensor<f32>"),
    # one device in each group
    ("W", "dense<[[0, 1]]> : tensor<1x2xi64>", "dense<[[0], [1]]> : tensor<2x1xi64>"),
])
def test_looks_alike(form: str, old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What XLA leaves alone, or what means the same either way, is not reported."""
    text = situation(form).read_text()
    assert old in text
    path = tmp_path / "changed.mlir"
    path.write_text(text.replace(old, new))
    assert forms(path, capsys) == []


def test_behind_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Calls are inlined first, as XLA:GPU does."""
    before = situation("U2").read_text()
    text = before.replace(
        "= stablehlo.add %iterArg_1, %6 : tensor<4xf32>",
        "= func.call @sum(%iterArg_1, %6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>")
    assert text != before
    end = text.rindex("}")
    path = tmp_path / "called.mlir"
    path.write_text(text[:end] + "  func.func private @sum(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {\n"
                    "    %z = stablehlo.add %x, %y : tensor<4xf32>\n    return %z : tensor<4xf32>\n  }\n}\n")
    assert forms(path, capsys) == ["U2"]
