"""Releases of JAX: tested ones pass without a word, others with a warning; a private name that is gone is an error."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from versions import SUPPORTED

from hlorewrite.util.releases import NEWEST, OLDEST, unknown_release, warn_of_unknown_release

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("version", [(0, 10, 2), (0, 10, 9), (0, 11, 0), (0, 12, 0), (0, 12, 7)])
def test_known_releases(version: tuple[int, ...]) -> None:
    assert unknown_release(version) == ""


@pytest.mark.parametrize("version, side", [((0, 10, 1), "older"), ((0, 13, 0), "newer"), ((1, 0, 0), "newer")])
def test_others_get_a_warning_that_says_what_is_off(version: tuple[int, ...], side: str) -> None:
    with pytest.warns(UserWarning, match=f"is {side} than hlorewrite is tested with.*rest on private names"):
        warn_of_unknown_release(version)


def test_the_package_asks_for_the_releases_that_are_known_and_tested() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    bounds = f">={'.'.join(map(str, OLDEST))},<0.{NEWEST[1] + 1}"
    assert f"jax{bounds}" in wanted and f"jaxlib{bounds}" in wanted
    assert [each.name for each in SUPPORTED] == [f"0.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]


def test_the_page_lists_the_releases_and_pythons_that_are_tested() -> None:
    rows = [line.split("|")[1:4] for line in (ROOT / "docs" / "versions.md").read_text("utf-8").splitlines()
            if line.startswith("| 0.")]
    listed = [(jax.strip(), set(pythons.replace(" ", "").split(","))) for jax, pythons, _ in rows]
    oldest = ".".join(map(str, OLDEST))
    assert listed == [(oldest if oldest.startswith(each.name) else each.name, set(each.pythons)) for each in SUPPORTED]


PROGRAM = """
import sys
from jaxlib import version
version.__version_info__ = (0, 14, 0)
import jax._src.interpreters.pxla
del sys.modules["jax._src.interpreters.pxla"]
delattr(sys.modules["jax._src.interpreters"], "pxla")
sys.modules["jax._src.interpreters.pxla"] = None
from hlorewrite.cli.main import guarded
sys.exit(guarded(sys.argv[1:]))
"""
MODULE = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"


def test_what_touches_nothing_private_works_on_a_release_without_the_names(tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text(MODULE)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", PROGRAM, *words], cwd=tmp_path, capture_output=True, text=True,
                              check=False)

    rewritten = run("opt", "in.mlir", "-O", "comm", "-o", "out.mlir")
    assert rewritten.returncode == 0 and "jaxlib 0.14.0 is newer than hlorewrite is tested with" in rewritten.stderr
    refused = run("verify", "in.mlir", "in.mlir")
    assert refused.returncode == 2 and "lacks a private name that hlorewrite needs" in refused.stderr
