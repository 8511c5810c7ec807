"""Python, JAX, its plug-ins and the extras of hlorewrite, from the metadata of installed packages."""

import importlib.metadata
import importlib.util
import platform
import re
import sys
import tomllib
from pathlib import Path

from hlorewrite.cli.doctor.diagnosis import Diagnosis
from hlorewrite.util.optional_dependencies import EXTRAS, install
from hlorewrite.util.releases import OLDEST, release, same_release, unknown_release
from hlorewrite.version import VERSION

OLDEST_PYTHON = (3, 11)
PLUGINS = ("jax-cuda13-plugin", "jax-cuda13-pjrt", "jax-cuda12-plugin", "jax-cuda12-pjrt", "jax-rocm7-plugin",
           "jax-rocm7-pjrt")
"""Packages with XLA's compilers for GPUs; each must match jaxlib's release."""
_HOME, _NAME = Path(__file__).resolve().parents[3], re.compile(r"[\w.-]+")
_REQUIREMENT = re.compile(r"([\w.-]+)[^;]*;.*extra\s*==\s*['\"]([\w-]+)['\"]")


def python_and_packages() -> list[Diagnosis]:
    """Python, hlorewrite, jax and jaxlib, and plug-ins."""
    version = platform.python_version()
    old = sys.version_info[:2] < OLDEST_PYTHON
    found = [Diagnosis("python", "Python", "wrong" if old else "ok", f"{version} ({sys.executable})",
                     f"install Python {'.'.join(map(str, OLDEST_PYTHON))} or newer" if old else ""),
             Diagnosis("packages", "hlorewrite", "ok", f"{VERSION} ({_HOME})")]
    jax, jaxlib = installed("jax"), installed("jaxlib")
    return [*found, _jax("jax", jax), _jax("jaxlib", jaxlib), *_fit(jax, jaxlib), *_plugins(jaxlib)]


def installed(package: str) -> str:
    """The version of a package; empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _jax(package: str, version: str) -> Diagnosis:
    if not version:
        return Diagnosis("packages", package, "wrong", "not installed", "pip install hlorewrite")
    unknown = unknown_release(release(version), package)
    if not unknown:
        return Diagnosis("packages", package, "ok", f"{version}, a supported release")
    older = release(version) < OLDEST
    oldest = ".".join(map(str, OLDEST))
    return Diagnosis("packages", package, "wrong" if older else "note", unknown.partition(":")[0],
                   f"pip install 'jax>={oldest}'" if older else "see docs/versions.md")


def _fit(jax: str, jaxlib: str) -> list[Diagnosis]:
    """jax refuses a jaxlib that is newer than itself, and one of an older minor release."""
    if not (jax and jaxlib) or release(jax)[:2] == release(jaxlib)[:2]:
        return []
    return [Diagnosis("packages", "jax and jaxlib", "wrong", f"jax is {jax}, and jaxlib is {jaxlib}",
                    f"pip install jaxlib=={jax}")]


def _plugins(jaxlib: str) -> list[Diagnosis]:
    found = []
    for package in PLUGINS:
        version = installed(package)
        if version:
            fits = same_release(version, jaxlib)
            wanted = ".".join(map(str, release(jaxlib)))
            found.append(Diagnosis("packages", package, "ok" if fits else "wrong",
                                 f"{version}, {'the' if fits else 'not the'} release of jaxlib",
                                 "" if fits else f"pip install {package}=={wanted}"))
    return found


def cuda_plugin() -> bool:
    """Whether XLA's compiler for NVIDIA GPUs is installed."""
    return any(installed(package) for package in PLUGINS if "cuda" in package)


def extras() -> list[Diagnosis]:
    """What is installed of each extra, and what it gives."""
    needed = _packages_of_extras()
    found = []
    for extra, gives in EXTRAS.items():
        lacking = [package for package in needed.get(extra, ()) if not installed(package)]
        state = "missing" if lacking or extra not in needed else "ok"
        text = gives if state == "ok" else f"{gives}: {', '.join(lacking) or 'nothing'} not installed"
        found.append(Diagnosis("extras", extra, state, text, "" if state == "ok" else install(extra)))
    return found


def _packages_of_extras() -> dict[str, list[str]]:
    """Extra -> its packages, as the metadata of hlorewrite lists them, or ``pyproject.toml`` of a checkout."""
    packages: dict[str, list[str]] = {}
    try:
        listed = importlib.metadata.requires("hlorewrite") or []
    except importlib.metadata.PackageNotFoundError:
        listed = []
    for match in filter(None, map(_REQUIREMENT.match, listed)):
        packages.setdefault(match[2], []).append(match[1])
    project = Path(_HOME, "pyproject.toml")
    if not packages and project.is_file():  # a checkout that was never installed
        declared = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
        return {extra: [_NAME.match(line)[0] for line in lines] for extra, lines in declared.items()}  # pyright: ignore
    return packages
