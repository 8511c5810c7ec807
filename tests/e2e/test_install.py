"""pip installs from a wheel, a source distribution, Git, and a checkout without symbolic links; each then rewrites.

Nothing is downloaded: what hlorewrite needs is there already, and the build backend too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation"]
LINKS = ("passes", "patterns")
MODULE = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"


def tracked() -> list[str]:
    """The project's files."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "hlorewrite", *LINKS,
                             "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "tools/build_hook.py"],
                            cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is not a checkout, so there is nothing to copy")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


@pytest.fixture(scope="module")
def without_links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout as Git makes it where links are off: they are text files."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in tracked():
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.write_text(os.readlink(ROOT / name))
        else:
            shutil.copy(ROOT / name, target)
    assert all((copy / "hlorewrite" / name).is_file() for name in LINKS)
    return copy


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=ROOT, check=True,
                   capture_output=True)
    return out


def installed(source: str, into: Path) -> set[str]:
    """Installs, runs the command line from the folder, and lists the files of the package."""
    subprocess.run([sys.executable, "-m", "pip", "install", *OFFLINE, "--target", str(into), source], check=True,
                   capture_output=True, text=True)
    done = subprocess.run([sys.executable, "-m", "hlorewrite", "opt", "-", "-O", "comm", "--stats=json"], input=MODULE,
                          text=True, capture_output=True, cwd=into, env={**os.environ, "PYTHONPATH": str(into)})
    assert done.returncode == 0, done.stderr
    assert "return %arg0" in done.stdout
    return {str(path.relative_to(into)) for path in (into / "hlorewrite").rglob("*")
            if path.is_file() and "__pycache__" not in path.parts}


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("hlorewrite/")}


def test_all_ways_install_the_same(built: Path, without_links: Path, tmp_path: Path) -> None:
    wheel, source = next(built.glob("*.whl")), next(built.glob("*.tar.gz"))
    files = files_of(wheel)
    assert {"hlorewrite/passes/comm_shift/comm_shift.py", "hlorewrite/patterns/linearity.hlopat",
            "hlorewrite/jaxbridge/hook/shim/sitecustomize.py"} <= files
    assert installed(str(wheel), tmp_path / "wheel") == files
    assert installed(str(source), tmp_path / "sdist") == files
    assert installed(str(without_links), tmp_path / "without links") == files
    subprocess.run("git init -q . && git add -A && git -c user.name=n -c user.email=e commit -qm all", shell=True,
                   cwd=without_links, check=True)
    assert installed(f"git+file://{without_links}", tmp_path / "git") == files


def test_the_source_distribution_holds_what_is_built_and_no_tests(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"hlorewrite", *LINKS, "tools", "pyproject.toml", "README.md", "CHANGELOG.md", "SECURITY.md",
                    "LICENSE", "PKG-INFO", ".gitignore"}
    assert [name for name in names if name.startswith("tools/")] == ["tools/build_hook.py"]
    assert not [name for name in names if "/test_" in name or name.startswith(tuple(f"hlorewrite/{x}" for x in LINKS))]
    assert "passes/comm_shift/comm_shift.py" in names and "patterns/proofs.json" in names


@pytest.mark.parametrize(("words", "code", "start"), [
    (["-c", "import hlorewrite"], 1, "ImportError: hlorewrite: "),
    (["-m", "hlorewrite", "--version"], 1, "hlorewrite: "),
])
def test_a_checkout_without_links_says_so(words: list[str], code: int, start: str, without_links: Path) -> None:
    done = subprocess.run([sys.executable, *words], cwd=without_links, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(without_links)})
    assert done.returncode == code
    last = done.stderr.strip().splitlines()[-1]
    assert last == (f"{start}this checkout has no symbolic links, so hlorewrite/passes leads nowhere; install it (pip "
                    "install .), or clone it with: git clone -c core.symlinks=true")
    assert words[0] == "-c" or done.stderr.count("\n") == 1
