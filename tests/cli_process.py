"""Processes of the command line whose imports are done, for tests of what a process does after its start."""

from __future__ import annotations

import atexit
import functools
import os
import pkgutil
from pathlib import Path

from warm_process import WarmServer

import hlorewrite

ROOT = Path(__file__).resolve().parent.parent
IMPORTED = ["filecheck.main", *sorted(
    name for _, name, _ in pkgutil.walk_packages(hlorewrite.__path__, "hlorewrite.")
    if not name.startswith(("hlorewrite.jaxbridge", "hlorewrite.pipelines.")) and not name.endswith("__main__"))]
"""What the command line imports: all but what imports jax, and programs of several meshes."""
READ = ["hlorewrite.rules.library:load_shipped", "hlorewrite.rules.library:shipped_facts"]
"""What most commands read."""


@functools.cache
def warm_cli() -> str:
    """A ``python`` for ``-m hlorewrite`` in the environment of the tests; its server ends with this process."""
    server = WarmServer(dict(os.environ, PYTHONPATH=str(ROOT)), [*IMPORTED, *READ])
    server.__enter__()
    atexit.register(server.__exit__)
    return str(server.folder / "python")
