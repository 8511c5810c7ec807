"""The settings that ``hlorewrite exec`` passes to the program it starts, in one environment variable."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from hlorewrite.util.memory_budget import MemoryBudget

VARIABLE = "HLOREWRITE_EXEC"
"""Holds the settings as JSON; subprocesses and workers inherit it."""
SHIM = Path(__file__).parent / "shim"
"""The folder that comes first on ``PYTHONPATH``: its ``sitecustomize.py`` waits until a program imports jax."""


@dataclass(frozen=True)
class ExecSettings:
    """The flags of ``hlorewrite exec``.

    Attributes:
      passes: the pipeline, as text; empty where the user names none.
      match: names and glob patterns of functions; empty for all that communicate.
      topology: the cluster that passes estimate times for.
      report: where to write what was done when the program ends; empty for nowhere.
      audit: rewrite nothing.
      pid: of the process that ``exec`` became.
      skip_frames: packages whose frames are not the user's.
      own_frames: packages whose frames are.
      keep: when a rewritten module is compiled; empty where the user does not say.
      natives: modules, or absolute paths of ``.py`` files, that register natives for rule files.
      plan: where plans are kept; empty to decide without them.
      on_mismatch: what to do when a plan does not fit.
      memory_budget: bytes a device may spend on what passes keep for longer, or ``auto``; None for the limits of the
        passes.
    """

    passes: str
    match: tuple[str, ...] = ()
    topology: str = ""
    report: str = ""
    audit: bool = False
    pid: int = 0
    skip_frames: tuple[str, ...] = ()
    own_frames: tuple[str, ...] = ()
    keep: str = ""
    natives: tuple[str, ...] = ()
    plan: str = ""
    on_mismatch: str = "error"
    memory_budget: MemoryBudget = None

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """An environment that makes every Python in it load the hook with jax.

        Args:
          inherited: the environment to start from.

        Example:
          >>> made = ExecSettings("comm").environment({"PYTHONPATH": "lib"})
          >>> made["PYTHONPATH"].split(os.pathsep)[1:]
          ['lib']
        """
        path = [str(SHIM), *filter(None, inherited.get("PYTHONPATH", "").split(os.pathsep))]
        return {**inherited, VARIABLE: json.dumps(asdict(self)), "PYTHONPATH": os.pathsep.join(dict.fromkeys(path))}


def from_environment(environment: Mapping[str, str]) -> ExecSettings:
    """The settings that ``environment`` wrote.

    Example:
      >>> from_environment(ExecSettings("comm", ("train_step",)).environment({})).match
      ('train_step',)
    """
    data = json.loads(environment[VARIABLE])
    lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
    return ExecSettings(**{**data, **lists})
