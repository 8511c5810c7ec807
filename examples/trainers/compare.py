"""Trains twice, with and without ``hlorewrite exec``, and compares losses and executed bytes.

``python examples/trainers/compare.py [--python PYTHON] -- PROGRAM ARGUMENTS`` runs ``PYTHON PROGRAM ARGUMENTS``. Losses
are what the program prints after ``LOSS`` or ``perplexity:``. Exit code 3 when they differ by more than
``--tolerance``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LOSS = re.compile(r"(?:LOSS |perplexity: )(\S+)")


@dataclass(frozen=True)
class TrainingComparison:
    """Two runs of one program.

    Attributes:
      plain: the losses alone.
      wrapped: the losses under ``exec``.
      modules: what ``exec --report`` says about each module.
    """

    plain: list[float]
    wrapped: list[float]
    modules: list[dict]

    @property
    def difference(self) -> float:
        """The largest relative difference of two losses; 0 of a program that only compiles."""
        return max((abs(a - b) / abs(a) for a, b in zip(self.plain, self.wrapped, strict=True)), default=0.0)

    @property
    def step(self) -> dict:
        """The module that communicates most."""
        return max(self.modules, key=lambda module: module["bytes_before"])

    def __str__(self) -> str:
        step = self.step
        losses = f"{len(self.plain)} losses, largest relative difference {self.difference:.1e}"
        before = "by XLA alone" if step["beside"] == "XLA alone" else "in the module"
        return (f"{losses if self.plain else 'compiled ahead of time'}; {step['name']}: {step['outcome']}, "
                f"{step['bytes_before']} executed bytes {before}, {step['bytes_after']} now")


def compare(command: Sequence[str], python: str = sys.executable, timeout_s: float = 600, *,
            trains: bool = True) -> TrainingComparison:
    """Runs a program twice; once, under ``exec``, when it only compiles.

    Args:
      command: what follows ``python``.
      python: the interpreter; it must have hlorewrite.
      timeout_s: for each run, seconds.
      trains: whether it prints losses; otherwise it compiles a step and ends.

    Raises:
      RuntimeError: a run failed, printed no loss, or did not communicate.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        plain = _losses([python, *command], timeout_s) if trains else []
        hooked = [python, "-m", "hlorewrite", "exec", "--report", str(report), "--", python, *command]
        wrapped = _losses(hooked, timeout_s, trains=trains)
        modules = json.loads(report.read_text())["modules"]
    if not modules:
        raise RuntimeError(f"{' '.join(command)}: it compiled no module that communicates")
    return TrainingComparison(plain, wrapped, modules)


def _losses(command: Sequence[str], timeout_s: float, *, trains: bool = True) -> list[float]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s,
                          env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8"})
    losses = [float(value) for value in _LOSS.findall(done.stdout + done.stderr)]
    if done.returncode or bool(losses) != trains:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return losses


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter to run the program with")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="allowed relative difference of losses")
    parser.add_argument("command", nargs="+", help="after --: the program and its arguments")
    options = parser.parse_args()
    found = compare(options.command, options.python)
    print(found)
    for remark in found.step["remarks"]:
        if remark["kind"] != "applied":
            about = remark["parameter"] or remark["type"]
            print(f"  {remark['kind']}: {remark['sentence']} [{about}]; {remark['advice']}")
    return 3 if found.difference > options.tolerance else 0


if __name__ == "__main__":
    sys.exit(main())
