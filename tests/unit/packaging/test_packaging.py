"""The package works from a wheel and from a bare checkout; rule files and data travel with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from check_packages import source_faults, wheel_faults

import hlorewrite

ROOT = Path(__file__).resolve().parents[3]
STEP = """module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c4 = stablehlo.constant dense<4> : tensor<i32>
    %z = stablehlo.constant dense<0.0> : tensor<4xf32>
    %r:2 = stablehlo.while(%i = %c0, %a = %z) : tensor<i32>, tensor<4xf32>
    cond {
      %p = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %s = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%b: tensor<f32>, %c: tensor<f32>):
        %t = stablehlo.add %b, %c : tensor<f32>
        stablehlo.return %t : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %n = stablehlo.add %a, %s : tensor<4xf32>
      %j = stablehlo.add %i, %c1 : tensor<i32>
      stablehlo.return %j, %n : tensor<i32>, tensor<4xf32>
    }
    return %r#1 : tensor<4xf32>
  }
}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel."""
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)], cwd=ROOT, check=True,
                   capture_output=True)
    unpacked = out / "unpacked"
    with zipfile.ZipFile(next(out.glob("*.whl"))) as archive:
        archive.extractall(unpacked)
    return unpacked


def run_from(folder: Path, elsewhere: Path) -> subprocess.CompletedProcess[str]:
    """comm-shift with the package taken from a folder, in an empty working directory."""
    program = ("import hlorewrite, pathlib, sys; "
               "print(pathlib.Path(hlorewrite.__file__).resolve().parent, file=sys.stderr); "
               "from hlorewrite.cli.main import entry; "
               "sys.argv = ['hlorewrite', 'opt', '--pass=comm-shift', '-']; entry()")
    return subprocess.run([sys.executable, "-c", program], input=STEP, text=True, capture_output=True, cwd=elsewhere,
                          env={**os.environ, "PYTHONPATH": str(folder)})


@pytest.mark.parametrize("kind", ["wheel", "checkout"])
def test_comm_shift_runs_from(kind: str, wheel: Path, tmp_path: Path):
    folder = wheel if kind == "wheel" else ROOT
    done = run_from(folder, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == str((folder / "hlorewrite").resolve())
    loop = done.stdout[done.stdout.index("} do {"):done.stdout.index("\n    }\n")]
    assert "all_reduce" not in loop
    assert done.stdout.count("all_reduce") == 1


def test_the_wheel_holds_rules_data_and_no_tests(wheel: Path):
    held = {str(path.relative_to(wheel)) for path in wheel.rglob("*") if path.is_file()}
    assert "hlorewrite/patterns/linearity.hlopat" in held
    assert "hlorewrite/passes/comm_shift/comm_shift.py" in held
    assert "hlorewrite/rules/syntax/hlopat.lark" in held
    assert any(name.startswith("hlorewrite/cost/data/") for name in held)
    assert any(name.startswith("hlorewrite/jaxbridge/xla/targets/") for name in held)
    assert not any(name.startswith(("tests", "bench", "passes", "patterns")) for name in held)


def test_what_a_release_checks_of_its_packages(wheel: Path):
    held = {str(path.relative_to(wheel)): path.read_bytes() for path in wheel.rglob("*") if path.is_file()}
    assert wheel_faults(held) == []
    assert wheel_faults({**held, "hlorewrite/ir/test_a.py": str(ROOT).encode()}) == [
        "the wheel contains hlorewrite/ir/test_a.py", f"hlorewrite/ir/test_a.py names {ROOT}"]
    assert source_faults(["passes/table.py", "patterns/natives.hlopat", "docs/faq.md"]) == [
        "the source distribution lacks tools/build_hook.py", "the source distribution contains docs/faq.md"]


def test_one_place_states_the_version(wheel: Path):
    [metadata] = wheel.glob("*.dist-info/METADATA")
    assert f"\nVersion: {hlorewrite.__version__}\n" in metadata.read_text("utf-8")
    extension = json.loads((ROOT / "tools/editors/vscode/package.json").read_text("utf-8"))
    assert extension["version"] == "0.0.0"  # it comes with the repository, and VS Code wants a number
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## ")]
    assert headings[0] == ("## Unreleased" if hlorewrite.__version__.endswith(".dev0")
                           else f"## {hlorewrite.__version__}")


def test_a_second_copy_of_passes_is_refused():
    done = subprocess.run([sys.executable, "-c", "import passes"], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 1
    assert "import hlorewrite.passes" in done.stderr
