"""Builds the wheel and the source distribution, installs each in a clean virtual environment, and uses it there.

Usage: ``python tools/check_packages.py [--python PYTHON] [--out dist]``. pip downloads what hlorewrite needs. What runs
is what a new user runs, outside the checkout: the version, ``hlorewrite doctor``, a golden file through ``opt``, and
the first commands of ``docs/quick-start.md``. Exit code 1 when something fails or a package contains what it should
not. """

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
NEEDED = ("hlorewrite/passes/table.py", "hlorewrite/patterns/collectives.hlopat", "hlorewrite/patterns/proofs.json",
          "hlorewrite/viewer/assets/page.html", "hlorewrite/rules/syntax/hlopat.lark", "hlorewrite/testing/plugin.py",
          "hlorewrite/jaxbridge/hook/shim/sitecustomize.py")
"""Files that a wheel holds: passes, rules, verdicts of proofs, assets of pages, and what is loaded by path."""
COMMANDS = (
    ("hlorewrite", "doctor"),
    ("hlorewrite", "opt", "golden.mlir", "--pass=comm-shift", "--split-input-file", "--remarks"),
    ("python", "examples/gpt.py", "--size", "tiny", "--out", "step.export"),
    ("hlorewrite", "report", "step.export", "--topology", "h200:1x8"),
    ("hlorewrite", "opt", "--pass=comm-shift", "step.export", "--emit=export", "-o", "shifted.export", "--remarks"),
    ("hlorewrite", "verify", "step.export", "shifted.export"),
)
"""What runs from each package, in a folder with ``golden.mlir`` and ``examples``."""
GOLDEN = "tests/lit/passes/comm-shift/accumulation/psum.mlir"


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="of the virtual environments (this one)")
    parser.add_argument("--out", default="dist", help="where the packages are written (dist)")
    options = parser.parse_args(words)
    from hlorewrite.version import VERSION
    out = Path(options.out).resolve()
    for earlier in out.glob("hlorewrite-*"):
        earlier.unlink()
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=ROOT, check=True,
                   capture_output=True)
    wheel, source = out / f"hlorewrite-{VERSION}-py3-none-any.whl", out / f"hlorewrite-{VERSION}.tar.gz"
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(source) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    faults = [*wheel_faults(contents), *source_faults(names)]
    for package in (wheel, source):
        faults += [f"{package.name}: {fault}" for fault in use(package, options.python, VERSION)]
    print("".join(f"FAULT: {fault}\n" for fault in faults), end="")
    print(f"{len(contents)} files in the wheel, {len(names)} in the source distribution, in {out}: "
          f"{f'{len(faults)} faults' if faults else 'ready to publish'}")
    return 1 if faults else 0


def wheel_faults(contents: dict[str, bytes]) -> list[str]:
    """What is wrong with the files of a wheel.

    Args:
      contents: of each file, by name.

    Example:
      >>> whole = {name: b"" for name in NEEDED}
      >>> wheel_faults(whole), wheel_faults({**whole, "tests/test_a.py": b""})
      ([], ['the wheel contains tests/test_a.py'])
    """
    strange = [name for name in contents if not name.startswith("hlorewrite") or "/test_" in name]
    here = str(ROOT).encode()
    return [*(f"the wheel lacks {name}" for name in NEEDED if name not in contents),
            *(f"the wheel contains {name}" for name in strange),
            *(f"{name} names {ROOT}" for name, content in contents.items() if here in content)]


def source_faults(names: Iterable[str]) -> list[str]:
    """What is wrong with the files of a source distribution.

    Args:
      names: its files, without the folder that all are in.

    Example:
      >>> source_faults(["passes/table.py", "patterns/natives.hlopat", "tools/build_hook.py", "bench/a.py"])
      ['the source distribution contains bench/a.py']
    """
    names = list(names)
    needed = ("passes/table.py", "patterns/natives.hlopat", "tools/build_hook.py")
    return [*(f"the source distribution lacks {name}" for name in needed if name not in names),
            *(f"the source distribution contains {name}" for name in names
              if name.startswith(("tests", "bench", "docs")) or "/test_" in name)]


def use(package: Path, python: str, version: str) -> list[str]:
    """What fails where a package is installed alone.

    Args:
      package: the wheel or the source distribution.
      python: makes the virtual environment.
      version: that it should have.
    """
    with tempfile.TemporaryDirectory(prefix="hlorewrite-") as name:
        folder = Path(name)
        subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
        programs = folder / "venv" / "bin"
        subprocess.run([str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        str(package)], check=True, cwd=folder, env=clean_environment())
        elsewhere = folder / "elsewhere"
        shutil.copytree(ROOT / "examples", elsewhere / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / GOLDEN, elsewhere / "golden.mlir")
        said = _run([str(programs / "hlorewrite"), "--version"], elsewhere)
        print(f"{package.name}: {said.stdout.strip()}", flush=True)
        faults = [] if f"hlorewrite {version} " in said.stdout else [f"--version says {said.stdout}{said.stderr}"]
        for command, *rest in COMMANDS:
            done = _run([str(programs / command), *rest], elsewhere)
            line = " ".join([command, *rest])
            last = (done.stdout.strip() or done.stderr.strip()).rpartition("\n")[2]
            print(f"  $ {line}\n    {last}", flush=True)
            faults += [f"{line}: exit code {done.returncode}: {done.stderr.strip()}"] if done.returncode else []
    return faults


def clean_environment() -> dict[str, str]:
    """The environment without what would lead to a checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return {**kept, "JAX_PLATFORMS": "cpu"}


def _run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, env=clean_environment())


if __name__ == "__main__":
    sys.exit(main())
