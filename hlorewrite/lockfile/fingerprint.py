"""The fingerprint of a plan: everything that must be the same to replay it."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

from jaxlib import version as jaxlib_version

from hlorewrite.ir.module import Module
from hlorewrite.lockfile.code import library_digest, users_code
from hlorewrite.lockfile.remarks import short_places
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.signature import signature_of
from hlorewrite.passmanager.spec import format_pipeline
from hlorewrite.version import VERSION

_FILES = ("dump", "path", "dir", "file", "cache")
"""Parts of the names of XLA flags that say where files are."""
LIBRARY = "library"
"""This library, by content: a version stays the same between two edits."""
CODE = "code"
"""The user's passes and natives, by content."""
PLACED_BY = "placed by"
"""The requested passes that change where arguments and results are placed."""


def made_for(module: Module, passes: Sequence[Pass], topology: str, **options: object) -> dict[str, str]:
    """All that has to be the same, by name.

    Args:
      module: the original module.
      passes: the passes the user asked for.
      topology: the cluster the user named; empty for none.
      **options: further options; None and False are left out.

    Returns:
      Texts without folders of this machine: files are named by their content.
    """
    files = [*(file for step in passes for file in getattr(step, "files", ())),
             *(getattr(step, "topology", "") for step in passes), topology]
    contents = sorted({found for file in files if (found := _content(file))})
    placed = ", ".join(str(step) for step in passes if step.changes_shardings)
    given = {"hlorewrite": VERSION, LIBRARY: library_digest(), CODE: users_code(passes),
             "jaxlib": jaxlib_version.__version__, "module": module.digest(),
             "passes": pipeline_text(passes), "topology": os.path.basename(topology), "files": ", ".join(contents),
             PLACED_BY: placed,
             **{name: str(value) for name, value in options.items() if value is not None and value is not False}}
    return {name: value for name, value in given.items() if value}


def flags_text(flags: Mapping[str, Any]) -> str:
    """XLA flags as text, without those that say where files are.

    Example:
      >>> flags_text({"xla_gpu_b": True, "xla_gpu_a": 3, "xla_dump_to": "/tmp/dump"})
      'xla_gpu_a=3 xla_gpu_b=True'
    """
    return " ".join(f"{name}={flags[name]}" for name in sorted(flags) if not names_files(name))


def names_files(flag: str) -> bool:
    """Whether an XLA flag says where files are.

    Example:
      >>> names_files("xla_dump_to"), names_files("xla_gpu_autotune_level")
      (True, False)
    """
    return any(part in flag for part in _FILES)


def pipeline_text(passes: Sequence[Pass]) -> str:
    """A pipeline whose rule files have no folders."""
    shown: list[Any] = []
    for step in passes:
        files = getattr(step, "files", None)
        known: Any = step
        shown.append(replace(known, files=tuple(map(os.path.basename, files))) if isinstance(files, tuple) else step)
    return short_places(format_pipeline(shown))


def signature_digest(module: Module) -> str:
    """A digest of the types and attributes of public functions: which step of its name a module is."""
    parts = []
    for name, function in sorted(signature_of(module).functions.items()):
        attributes = [sorted((key, str(value)) for key, value in each.items() if key != "jax.result_info")
                      for each in (*function.argument_attributes, *function.result_attributes)]
        parts.append((name, list(map(str, function.inputs)), list(map(str, function.results)), attributes))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def jax_version() -> str:
    """The version of JAX that is installed, which need not be imported; empty without one."""
    try:
        return metadata.version("jax")
    except metadata.PackageNotFoundError:
        return ""


def _content(file: str) -> str:
    """A file by its name and the digest of its content; empty if a name is not a file, as of a shipped one."""
    path = file if os.path.isfile(file) else file.rpartition(":")[0]
    if not path or not os.path.isfile(path):
        return ""
    with open(path, "rb") as opened:
        return f"{os.path.basename(path)} {hashlib.file_digest(opened, 'sha256').hexdigest()[:16]}"
