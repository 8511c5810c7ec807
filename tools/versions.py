"""Runs the tests on every supported minor version of JAX, with the Pythons this machine has: ``make versions``.

Each version gets a virtual environment in ``build/versions``. A version for which no Python is found is left out, and
named.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "versions"


@dataclass(frozen=True)
class JaxMinor:
    """One supported minor version of JAX.

    Attributes:
      name: such as ``0.12``.
      requirement: what pip is asked for.
      pythons: the Pythons it has wheels for, the one to prefer first.
    """

    name: str
    requirement: str
    pythons: tuple[str, ...]


SUPPORTED = (JaxMinor("0.12", ">=0.12,<0.13", ("3.13", "3.12")), JaxMinor("0.11", ">=0.11,<0.12", ("3.12", "3.13")),
             JaxMinor("0.10", ">=0.10.2,<0.11", ("3.11", "3.12")))
"""Newest first."""
_OF_ONE_VERSION = ("jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda13-pjrt")
"""Packages that fit together in one minor version only; the plug-in compiles for described GPUs."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; exit code 1 when a version failed or none could run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[each.name for each in SUPPORTED], help="one minor version")
    parser.add_argument("tests", nargs="*", default=["tests"], help="what to run (tests)")
    options = parser.parse_args(words)
    codes = []
    for minor in SUPPORTED:
        if options.only in (None, minor.name):
            codes.append(_run(minor, ["--run-heavy", *options.tests]))
    return 0 if codes and all(code == 0 for code in codes if code is not None) and any(c == 0 for c in codes) else 1


def version_in(python: str) -> str:
    """The version of JAX that an interpreter has, such as ``0.12.0``."""
    import_version = "import importlib.metadata; print(importlib.metadata.version('jax'))"
    return subprocess.run([python, "-c", import_version], capture_output=True, text=True, check=True).stdout.strip()


def environment(minor: JaxMinor) -> str | None:
    """The interpreter of a version's environment, which is made; None if no Python is found."""
    python = next((found for version in minor.pythons if (found := find_python(version))), None)
    if python is None:
        print(f"jax {minor.name}: left out, no Python {' or '.join(minor.pythons)} here", flush=True)
        return None
    inside = FOLDER / minor.name / "bin" / "python"
    if not inside.exists():
        subprocess.run([python, "-m", "venv", str(FOLDER / minor.name)], check=True)
    subprocess.run([str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--editable",
                    f"{ROOT}[test]", *(f"{name}{minor.requirement}" for name in _OF_ONE_VERSION)], check=True)
    print(f"== jax {minor.name} on {python}", flush=True)
    return str(inside)


def _run(minor: JaxMinor, tests: Sequence[str]) -> int | None:
    """The exit code of the tests on a version; None if no Python is found."""
    inside = environment(minor)
    if inside is None:
        return None
    workers = ["-n", "auto", "--maxprocesses", "8", "--dist", "loadscope", "--no-loadscope-reorder"]
    return subprocess.run([inside, "-m", "pytest", "-q", *workers, *tests], cwd=ROOT, check=False,
                          env=dict(os.environ, PYTHONPATH=str(ROOT))).returncode


def find_python(version: str) -> str | None:
    """An interpreter of a version: on the path, or among those of pyenv.

    Args:
      version: such as ``3.12``.

    Returns:
      Its path; None when there is none that runs.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
    for candidate in filter(None, candidates):
        done = subprocess.run([candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                              capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return candidate
    return None


if __name__ == "__main__":
    sys.exit(main())
