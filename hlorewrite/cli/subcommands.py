"""The subcommands and the module of each; a module is imported when its subcommand is used.

A subcommand is a module with ``HELP``, ``add_arguments(parser)`` and ``run(args)``; it may have ``prepare(words)``,
which sees the command line before it is parsed. ``tools/import_layers.py`` reads this table as imports.
"""

import argparse
import importlib
import importlib.util
from typing import Protocol, cast

from hlorewrite.util.registered import SUBCOMMANDS as REGISTERED

SUBCOMMANDS = {
    "opt": "hlorewrite.cli.opt.command",
    "compile": "hlorewrite.cli.step.compile",
    "verify": "hlorewrite.cli.verify",
    "validate": "hlorewrite.cli.validate",
    "validate-xla": "hlorewrite.cli.validate_xla",
    "run": "hlorewrite.cli.run",
    "exec": "hlorewrite.cli.exec",
    "report": "hlorewrite.cli.report",
    "timeline": "hlorewrite.cli.step.timeline",
    "audit": "hlorewrite.cli.step.audit",
    "tune": "hlorewrite.cli.step.tune",
    "estimate": "hlorewrite.cli.estimate",
    "collective": "hlorewrite.cli.collective",
    "calibrate": "hlorewrite.cli.calibrate",
    "rules": "hlorewrite.cli.rules",
    "fmt": "hlorewrite.cli.fmt",
    "lint": "hlorewrite.cli.lint",
    "view": "hlorewrite.cli.view",
    "doctor": "hlorewrite.cli.doctor",
    "completion": "hlorewrite.cli.completion",
}


class Subcommand(Protocol):
    """The interface of a subcommand's module."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares its flags."""

    def run(self, args: argparse.Namespace) -> int:
        """Runs it and returns the exit code."""
        ...


def available() -> list[str]:
    """The subcommands of this installation, in the order in which help shows them."""
    return [name for name, module in _all().items() if importlib.util.find_spec(module) is not None]


def subcommand(name: str) -> Subcommand:
    """The module of a subcommand."""
    return cast(Subcommand, importlib.import_module(_all()[name]))


def _all() -> dict[str, str]:
    return {**SUBCOMMANDS, **REGISTERED}
