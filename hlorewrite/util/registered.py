"""Registrations of rooms above the core: passes, subcommands, and the reader of programs of several meshes.

Nothing is imported before it is asked for, so this file costs ``import hlorewrite`` nothing.
"""

from collections.abc import Mapping

PASSES: dict[str, str] = {}
"""Name of a pass -> ``module:class``."""
LOADED: dict[str, type] = {}
"""Name of a pass -> its class, of files that the user loaded (``hlorewrite.load``, ``--load``)."""
SUBCOMMANDS: dict[str, str] = {}
"""Name of a subcommand -> its module."""
PROGRAMS: list[str] = []
"""The module that reads programs of several meshes, at most one."""


def register(*, passes: Mapping[str, str] | None = None, subcommands: Mapping[str, str] | None = None,
             programs: str = "") -> None:
    """Makes passes and subcommands known by name.

    Args:
      passes: name to ``module:class``.
      subcommands: name to the module of each, as ``cli.subcommands`` describes it.
      programs: the module that reads programs of several meshes (``passmanager.programs.ProgramAdapter``).

    Example:
      >>> register(passes={"inline": "hlorewrite.passes.inline:Inline"})
      >>> PASSES["inline"]
      'hlorewrite.passes.inline:Inline'
    """
    PASSES.update(passes or {})
    SUBCOMMANDS.update(subcommands or {})
    PROGRAMS[:] = [programs] if programs else PROGRAMS
