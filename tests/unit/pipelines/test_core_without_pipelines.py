"""The core needs nothing of ``hlorewrite.pipelines``: a copy without it rewrites, reports and names what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hlorewrite

PACKAGE = Path(hlorewrite.__file__).parent
STEP = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> attributes {mhlo.num_partitions = 8 : i32} {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32> }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
IMPORT_ALL = """
import importlib, pathlib, pkgutil
import hlorewrite
assert str(pathlib.Path(hlorewrite.__file__).parent) == {folder!r}
for _, name, _ in pkgutil.walk_packages(hlorewrite.__path__, "hlorewrite."):
    if not name.endswith("__main__") and ".shim" not in name:
        importlib.import_module(name)
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, but without programs of several meshes."""
    folder = tmp_path_factory.mktemp("core")
    shutil.copytree(PACKAGE, folder / "hlorewrite", ignore=lambda base, names: [
        name for name in names if name == "__pycache__" or (name == "pipelines" and Path(base) == PACKAGE)])
    assert not (folder / "hlorewrite" / "pipelines").exists()
    return folder


def python(core: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=core, input=text, capture_output=True, text=True, check=False,
                          env=dict(os.environ, PYTHONPATH=str(core), JAX_PLATFORMS="cpu"))


def test_every_module_can_be_imported(core: Path) -> None:
    done = python(core, "-c", IMPORT_ALL.format(folder=str(core / "hlorewrite")))
    assert done.returncode == 0, done.stderr


def test_modules_are_rewritten_and_reported(core: Path) -> None:
    done = python(core, "-m", "hlorewrite", "opt", "-O", "comm", "--check=interp", text=STEP)
    assert done.returncode == 0 and "all_reduce" in done.stdout, done.stderr
    done = python(core, "-m", "hlorewrite", "report", "-", text=STEP)
    assert done.returncode == 0 and "all-reduce" in done.stdout, done.stderr


@pytest.mark.parametrize("words", [["pipeline", "simulate"], ["opt", "--pass=split-stages"]], ids=" ".join)
def test_what_is_not_there_is_named(core: Path, words: list[str]) -> None:
    done = python(core, "-m", "hlorewrite", *words, text=STEP)
    assert done.returncode == 2 and "unknown" in done.stderr and "Traceback" not in done.stderr


def test_a_program_of_several_meshes_is_refused(core: Path) -> None:
    program = Path(__file__).parents[2] / "programs" / "two_stages.mlir"
    done = python(core, "-m", "hlorewrite", "opt", "--pass=comm-shift", str(program))
    assert done.returncode == 2 and "several meshes" in done.stderr and "Traceback" not in done.stderr
