"""Settings that ``hlorewrite exec`` passes to the program it starts, in one environment variable."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hlorewrite.jaxbridge.step.options import StepOptions
from hlorewrite.passmanager.load_file import load_files

VARIABLE = "HLOREWRITE_EXEC"
"""Holds the settings as JSON; subprocesses and workers inherit it."""
SHIM = Path(__file__).parent / "shim"
"""The folder that comes first on ``PYTHONPATH``: its ``sitecustomize.py`` waits until a program imports jax."""


@dataclass(frozen=True)
class ExecRun:
    """The settings that ``hlorewrite exec`` passes on.

    Attributes:
      options: passes and policies.
      report: where to write what was done when the program ends; empty for nowhere.
      natives: modules, or absolute paths of ``.py`` files, that register natives for rule files.
      loads: absolute paths of the Python files that ``--load`` names.
      pid: the process id of the process that ``exec`` became.
      capture: where to write the first module that matches, in place of rewriting it; empty to rewrite.
    """

    options: StepOptions
    report: str = ""
    natives: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    pid: int = 0
    capture: str = ""

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """An environment that makes every Python in it load the hook with jax.

        Args:
          inherited: the environment to start from.

        Example:
          >>> made = ExecRun(StepOptions("comm")).environment({"PYTHONPATH": "lib"})
          >>> made["PYTHONPATH"].split(os.pathsep)[1:]
          ['lib']
        """
        path = [str(SHIM), *filter(None, inherited.get("PYTHONPATH", "").split(os.pathsep))]
        text = json.dumps({"options": self.options.to_json(), "report": self.report, "natives": self.natives,
                           "loads": self.loads, "pid": self.pid, "capture": self.capture})
        return {**inherited, VARIABLE: text, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path))}


def from_environment(environment: Mapping[str, str]) -> ExecRun:
    """Reads the settings that ``environment`` wrote, and loads the files that they name.

    Example:
      >>> from_environment(ExecRun(StepOptions("comm", "train_step")).environment({})).options.match
      'train_step'
    """
    data = json.loads(environment[VARIABLE])
    load_files(data["loads"])  # before the options, which name passes
    return ExecRun(StepOptions.from_json(data["options"]), data["report"], tuple(data["natives"]),
                   tuple(data["loads"]), data["pid"], data["capture"])
