"""``hlorewrite doctor``: what is installed, which settings hold, a self-test, and what works here."""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from hlorewrite.util.optional_dependencies import EXTRAS, install
from hlorewrite.util.releases import OLDEST, release, same_release, unknown_release
from hlorewrite.version import VERSION

# ---- one finding


State = Literal["ok", "note", "missing", "wrong"]
"""``missing``: an optional part is not there; ``wrong``: something that is needed does not work."""


@dataclass(frozen=True)
class Diagnosis:
    """What ``hlorewrite doctor`` found about one thing.

    Attributes:
      topic: ``python``, ``packages``, ``extras``, ``settings`` or ``self-test``.
      name: the name of the thing.
      state: whether it is as it should be.
      text: its version or value.
      fix: what to do about it; empty if nothing has to be done.
    """

    topic: str
    name: str
    state: State
    text: str
    fix: str = ""

    def as_json(self) -> dict[str, str]:
        """The finding as JSON data."""
        return asdict(self)


# ---- the subcommand


HELP = ("check Python, JAX, plug-ins, extras and settings, and test in a few seconds what works here; exit code 1 for "
        "a fault")
_MARKS = {"ok": "", "note": "note", "missing": "missing", "wrong": "WRONG"}
_WORKS = {"read a module": "reading modules", "run a pass": "rewriting", "run on CPU devices": "running on CPU devices",
          "compile for a described GPU": "compiling for described GPUs", "devices": "finding devices"}
"""Step of the self-test -> what works with it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite doctor``."""
    parser.add_argument("--no-self-test", action="store_true", help="run nothing; only list versions and settings")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite doctor``."""
    from hlorewrite.util.progress import progress

    found = [*python_and_packages(), *extras(), *settings(os.environ)]
    if not args.no_self_test and installed("jax") and installed("jaxlib"):
        with progress("self-test"):
            found += self_test(cuda_plugin())
    faults = [finding for finding in found if finding.state == "wrong"]
    verdict = summary(found)
    print(json.dumps({"ok": not faults, "summary": verdict, "findings": [each.as_json() for each in found]}, indent=2)
          if args.json else f"{text(found)}\n{verdict}")
    return 1 if faults else 0


def text(found: Sequence[Diagnosis]) -> str:
    """The findings by topic, as aligned columns; a fix is shown under its line.

    Example:
      >>> print(text([Diagnosis("extras", "viz", "missing", "pictures", "pip install 'hlorewrite[viz]'")]), end="")
      extras
        viz  missing  pictures
             fix: pip install 'hlorewrite[viz]'
    """
    name = max(len(each.name) for each in found)
    mark = max(len(_MARKS[each.state]) for each in found)
    lines, topic = [], ""
    for each in found:
        if each.topic != topic:
            topic = each.topic
            lines.append(topic)
        lines.append(f"  {each.name:<{name}}  {_MARKS[each.state]:<{mark}}  {each.text}".rstrip())
        if each.fix:
            lines.append(f"  {'':<{name}}  fix: {each.fix}")
    return "".join(f"{line}\n" for line in lines)


def summary(found: Sequence[Diagnosis]) -> str:
    """What works here and what does not, with the fixes; the extras that are not installed, with one fix for all.

    Example:
      >>> summary([Diagnosis("self-test", "run a pass", "ok", "done"),
      ...          Diagnosis("extras", "prove", "missing", "", "pip ..."),
      ...          Diagnosis("extras", "viz", "missing", "", "pip ...")])
      "works here: rewriting; optional, not installed: prove, viz (pip install 'hlorewrite[prove,viz]')"
    """
    works = [_WORKS.get(each.name, each.name) for each in found if each.topic == "self-test" and each.state == "ok"]
    parts = [f"works here: {', '.join(works) if works else 'nothing was tested'}"]
    for state, word in (("wrong", "does not work"), ("note", "mind")):
        those = [f"{_WORKS.get(each.name, each.name)} ({each.fix})" if each.fix else each.name
                 for each in found if each.state == state]
        parts += [f"{word}: {', '.join(dict.fromkeys(those))}"] if those else []
    lacking = [each.name for each in found if each.state == "missing" and each.topic == "extras"]
    parts += [f"optional, not installed: {', '.join(lacking)} ({install(','.join(lacking))})"] if lacking else []
    return "; ".join(parts)


# ---- Python, JAX, its plug-ins and the extras of hlorewrite, from the metadata of installed packages


OLDEST_PYTHON = (3, 11)
PLUGINS = ("jax-cuda13-plugin", "jax-cuda13-pjrt", "jax-cuda12-plugin", "jax-cuda12-pjrt", "jax-rocm7-plugin",
           "jax-rocm7-pjrt")
"""Packages with XLA's compilers for GPUs; each must match jaxlib's release."""
_HOME, _NAME = Path(__file__).resolve().parents[2], re.compile(r"[\w.-]+")
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


# ---- environment variables that change what hlorewrite, JAX and XLA do, and what each of those that are set does


_OFF = ("0", "false", "off", "no")
KNOWN: Mapping[str, str] = {
    "HLOREWRITE": "0 switches off the decorators, patch_jit and exec",
    "HLOREWRITE_TRACEBACK": "errors end with a traceback instead of one line",
    "HLOREWRITE_TOKEN": "the secret that authenticates the processes of a job",
    "HLOREWRITE_EXEC": "set by `hlorewrite exec` for the program that it starts",
    "XLA_FLAGS": "XLA's own flags, for every compilation",
    "JAX_PLATFORMS": "the platforms that JAX looks for",
    "JAX_NUM_CPU_DEVICES": "how many CPU devices JAX makes",
    "JAX_ENABLE_X64": "64-bit numbers; modules written with and without it differ",
    "JAX_DISABLE_JIT": "nothing is compiled, so nothing is rewritten",
    "JAX_USE_SHARDY_PARTITIONER": "which partitioner lowers shardings",
    "JAX_COMPILATION_CACHE_DIR": "where JAX keeps compiled programs; rewritten ones get separate keys",
    "JAX_TRACEBACK_FILTERING": "which frames of errors JAX shows",
    "XLA_PYTHON_CLIENT_MEM_FRACTION": "the share of a GPU's memory that steps may take; budgets are computed from it",
    "XLA_CLIENT_MEM_FRACTION": "the share of a GPU's memory that steps may take; budgets are computed from it",
    "CUDA_VISIBLE_DEVICES": "the GPUs that this process may use",
    "XDG_CACHE_HOME": "the folder of the cache of `hlorewrite tune`",
}
"""Variable -> what it does."""
_STOPPING = {"HLOREWRITE": (True, "unset HLOREWRITE"), "JAX_DISABLE_JIT": (False, "unset JAX_DISABLE_JIT"),
             "JAX_USE_SHARDY_PARTITIONER": (True, "unset JAX_USE_SHARDY_PARTITIONER; only Shardy is tested")}
"""Variable -> (True if a value that means no is reported, False if one that means yes is; and what to do)."""
_SECRET = ("HLOREWRITE_TOKEN", "HLOREWRITE_EXEC")


def settings(environment: Mapping[str, str]) -> list[Diagnosis]:
    """The variables that are set and have an effect, and a line that names the other ones.

    Args:
      environment: the environment of this process.
    """
    others = sorted(name for name in environment if name.startswith("JAX_") and name not in KNOWN)
    given = [name for name in (*KNOWN, *others) if environment.get(name, "").strip()]
    found = [_setting(name, environment[name].strip()) for name in given]
    unset = ", ".join(name for name in KNOWN if name not in given and name not in _SECRET)
    return [*found, Diagnosis("settings", "not set", "ok", unset)]


def _setting(name: str, value: str) -> Diagnosis:
    does = KNOWN.get(name, "a setting of JAX")
    shown = "..." if name in _SECRET else value
    if name == "XLA_FLAGS":
        from hlorewrite.hlo.published_flags import users_flags
        flags = users_flags({name: value})
        does = f"{len(flags)} of XLA's flags, for every compilation" if flags else "it contains no valid XLA flag"
        return Diagnosis("settings", name, "ok" if flags else "note", f"{shown}: {does}",
                       "" if flags else "write flags as --xla_name=value, separated by spaces")
    stops, fix = _STOPPING.get(name, (False, ""))
    matters = bool(fix) and (value.lower() in _OFF) == stops
    return Diagnosis("settings", name, "note" if matters else "ok", f"{shown}: {does}", fix if matters else "")


# ---- the self-test, in a separate process, and how far it got


MOST_SECONDS = 60.0
"""The process is ended after this time: XLA or a driver hangs."""
NAMES: Mapping[str, str] = {
    "devices": "devices", "parse": "read a module", "rewrite": "run a pass", "run": "run on CPU devices",
    "described": "compile for a described GPU"}
"""Step of the self-test -> its name."""
_LOGGED = re.compile(r"^[A-Z]\d{4} [\d:.]+ +\d+ \S+\] ")
_NOISE = ("W0", "I0", "WARNING: All log messages")


def self_test(described: bool, command: Sequence[str] = ()) -> list[Diagnosis]:
    """The result of each step of the self-test.

    Args:
      described: whether the plug-in that compiles for described GPUs is installed.
      command: run this instead of the self-test; tests use it.
    """
    from hlorewrite.jaxbridge.self_test import COMMAND
    words = [*(command or COMMAND),
             *(["--described"] if described else [])]
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "GLOG_minloglevel": "3", **os.environ}
    try:
        done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=MOST_SECONDS, check=False)
        printed, ended = done.stdout, _end(done)
    except subprocess.TimeoutExpired as late:
        printed = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        ended = f"no answer within {MOST_SECONDS:.0f} s"
    found = _read(printed, ended)
    if not described:
        found.append(Diagnosis("self-test", NAMES["described"], "missing", "the CUDA plug-in is not installed",
                             install("aot")))
    return found


def _end(done: subprocess.CompletedProcess[str]) -> str:
    """How the process ended; empty if it did as it should."""
    if not done.returncode:
        return ""
    lines = [line for line in done.stderr.strip().splitlines() if line.strip() and not line.startswith(_NOISE)]
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return f"the process ended with {how}" + (f" ({_LOGGED.sub('', lines[-1].strip())})" if lines else "")


def _read(printed: str, ended: str) -> list[Diagnosis]:
    """The findings, from what the process printed; the step that it did not answer is where it ended."""
    said = [json.loads(line) for line in printed.splitlines() if line.startswith('{"step"')]
    answers = {each["step"]: each for each in said}  # the last line of each step
    found = [_step(each, ended) for each in answers.values()]
    if ended and not any(finding.state == "wrong" for finding in found):
        found.append(Diagnosis("self-test", "start", "wrong", ended, "reinstall jax and hlorewrite"))
    return found


def _step(said: Mapping[str, str], ended: str) -> Diagnosis:
    name = NAMES.get(said["step"], said["step"])
    if "done" in said:
        return Diagnosis("self-test", name, "ok", f"{said['done']} ({said['seconds']} s)")
    if "late" in said:
        return Diagnosis("self-test", name, "note", "not started: the self-test stops after 10 s", "run it again")
    if "failed" in said:
        return Diagnosis("self-test", name, "wrong", said["failed"], said["hint"] or _FIXES.get(said["step"], ""))
    if "XLA_FLAGS" in ended:
        return Diagnosis("self-test", name, "wrong", ended, "correct XLA_FLAGS")
    return Diagnosis("self-test", name, "wrong", ended or "no answer", _FIXES.get(said["step"], ""))


_FIXES = {"devices": "set JAX_PLATFORMS=cpu, or repair the driver of the GPU", "parse": "reinstall jaxlib",
          "rewrite": "reinstall hlorewrite", "run": "check XLA_FLAGS, and reinstall jaxlib",
          "described": "install the plug-in of jaxlib's release: pip install -U 'hlorewrite[aot]'"}
"""Step -> what to do if it fails and does not say so itself."""
