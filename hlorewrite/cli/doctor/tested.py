"""Runs the self-test in a separate process, and reports how far it got."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence

from hlorewrite.cli.doctor.diagnosis import Diagnosis
from hlorewrite.jaxbridge.self_test import COMMAND
from hlorewrite.util.optional_dependencies import install

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
