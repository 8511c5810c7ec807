"""One trial: a damaged input through the command, and whether the command behaved.

The command runs as ``hlorewrite.cli.main.entry`` does, in a fork of a process that has imported it: starting Python
for each trial would take most of the time. A share of the trials starts a real process.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from generators.hostile.seeds import FORMS, ROOT, Seed, seeds

HANG_S, SOLVER_S = 20.0, 120.0
"""Seconds after which a command hangs; of one that looks for an optimal order within the bounds of its solver."""
OLD = b"// what was there before\n"
PYTHON = sys.executable
_LATENT = ("Traceback (most recent call last)", "unexpected error (", "Exception ignored in")


@dataclass(frozen=True)
class Misbehaviour:
    """What a command did that it must not.

    Attributes:
      kind: ``traceback``, ``silent``, ``hang``, ``file``, ``lines``, ``json`` or ``code``.
      words: the command line.
      said: the end of what it printed to stderr.
    """

    kind: str
    words: tuple[str, ...]
    said: str


def trial(seed: Seed, real: bool = False) -> Misbehaviour | None:
    """Runs the first command of an input in a folder of its own.

    Args:
      seed: the input and the command.
      real: start a Python process, in place of a fork of this one.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        _write(seed, folder)
        (folder / "out").write_bytes(OLD)
        main = seed.content[0][0]
        words = tuple(word.replace("{in}", main).replace("{out}", "out") for word in seed.commands[0])
        limit = SOLVER_S if words[0] in ("reshard", "pipeline") else HANG_S
        code, seconds = (_process if real else _fork)(words, folder, limit)
        said = (folder / "stderr").read_bytes().decode("utf-8", "replace")
        kind = "hang" if seconds > limit else _judged(words, code, said, folder, seed)
        return Misbehaviour(kind, words, said[-2000:]) if kind else None


def _write(seed: Seed, folder: Path) -> None:
    for path, content in seed.content:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)


def _judged(words: tuple[str, ...], code: int, said: str, folder: Path, seed: Seed) -> str:
    if any(sentence in said for sentence in _LATENT):
        return "traceback"
    printed = (folder / "stdout").stat().st_size > 0
    if code not in (0, 1, 2, 3):
        return "code"
    if code and "hlorewrite: error: " not in said and not printed and not said:
        return "silent"
    if code == 1 and not printed and "error" not in said and "would be" not in said:
        return "silent"
    if len(re.findall(r"^hlorewrite: error: ", said, re.MULTILINE)) > 1 and "--split-input-file" not in words:
        return "lines"
    if any(path.name.startswith(".hlorewrite-") for path in folder.rglob("*")):
        return "file"
    shows = any(word.startswith(("--list-", "--help", "--explain", "--diff")) for word in words)
    if "-o" in words and words[-1] == "out" and not shows:
        left = (folder / "out").read_bytes()
        if (left == OLD) is (code == 0) or not left:
            return "file"
    reads = words[0] != "fmt" and seed.form not in ("trace", "arguments", "cache", "reshard", "pipeline")
    if not code and "--json" in words and _not_finite((folder / "stdout").read_bytes()):
        return "json"
    changed = reads and any((folder / path).read_bytes() != content for path, content in seed.content)
    return "file" if changed else ""


def _not_finite(printed: bytes) -> bool:
    """Whether output that must be JSON is none, or holds numbers that JSON has not."""
    def refuse(text: str) -> None:
        raise ValueError(text)

    try:
        json.loads(printed, parse_constant=refuse)
    except ValueError:
        return True
    return False


def _process(words: tuple[str, ...], folder: Path, limit: float) -> tuple[int, float]:
    begin = time.monotonic()
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as said:
        process = subprocess.Popen([PYTHON, "-m", "hlorewrite", *words], cwd=folder, stdout=out, stderr=said,
                                   stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            code = process.wait(limit + 1)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
    return code, time.monotonic() - begin


def _fork(words: tuple[str, ...], folder: Path, limit: float) -> tuple[int, float]:
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(words, folder)
    # Ends: the child ends, or is killed after the limit.
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        seconds = time.monotonic() - begin
        if done:
            return os.waitstatus_to_exitcode(status), seconds
        if seconds > limit:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGKILL, seconds
        time.sleep(0.002)


def _become(words: tuple[str, ...], folder: Path) -> None:
    """The child: everything of ``python -m hlorewrite`` but its start."""
    code = 1
    try:
        os.chdir(folder)
        for number, (name, flags) in enumerate((("/dev/null", os.O_RDONLY), ("stdout", os.O_WRONLY | os.O_CREAT),
                                                ("stderr", os.O_WRONLY | os.O_CREAT))):
            handle = os.open(name, flags, 0o666)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["hlorewrite", *words]
        from hlorewrite.cli.main import entry
        entry()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 1
    except BaseException:
        import traceback
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def preload(folder: Path) -> None:
    """Imports what commands need, by running them in this process, so that forks do not.

    Processes that commands start are forked too, from one that has imported JAX (``tools/docs/warm_process.py``).

    Args:
      folder: where files that take time to make are kept.
    """
    import contextlib
    import io

    sys.path.insert(0, str(ROOT / "tools" / "docs"))
    from warm_process import warm_python
    sys.executable = warm_python()
    from hlorewrite.cli.main import guarded
    from hlorewrite.rules.syntax.parser import parse
    parse("native predicate p(op: Op);\n", "a.hlopat")
    before = os.getcwd()
    for form in FORMS:
        for seed in seeds(form, folder)[:1]:
            with tempfile.TemporaryDirectory(prefix="fuzz-") as name, contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.redirect_stderr(io.StringIO()):
                os.chdir(name)
                try:
                    _write(seed, Path(name))
                    for words in seed.commands:
                        if not any(word.startswith("--check") for word in words):
                            guarded([word.replace("{in}", seed.content[0][0]).replace("{out}", "out")
                                     for word in words])
                finally:
                    os.chdir(before)
    gc.freeze()


def seeded(form: str, number: int) -> random.Random:
    """The random numbers of one mutation."""
    return random.Random(f"{form} {number}")
