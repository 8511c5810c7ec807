"""The fingerprint of a plan: everything that must be the same to replay it."""

import ast
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxlib import version as jaxlib_version

from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.module import Module
from hlorewrite.lockfile.remarks import short_places
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.signature import signature_of
from hlorewrite.passmanager.spec import format_pipeline
from hlorewrite.rules.library import checked, read_source
from hlorewrite.rules.register import NATIVES
from hlorewrite.util.reachability import reachable
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


# ---- the code that a plan was made by, by content: this library, and the passes and natives of the user

# A version does not change with each edit, and the name of a file says nothing of what is in it. If any of this code
# differs, the passes may make a different module, so the plan does not fit.


_DIGITS = 16
_OWN = __name__.partition(".")[0]
_ROOT = Path(__file__).parents[1]
_SOURCES = frozenset({".py", ".hlopat", ".lark", ".toml", ".csv", ".txtpb"})
"""Files that determine a decision: code, rules, their grammar, clusters and measured curves."""
_INSTALLED = ("site-packages", "dist-packages")


@cache
def library_digest() -> str:
    """A digest of this library's files, wherever it is installed; read once for a process."""
    return folder_digest(str(_ROOT))


def folder_digest(folder: str) -> str:
    """A digest of the names and contents of all sources below a folder."""
    whole = hashlib.sha256()
    for name, path in sorted(_source_files(folder, "")):
        with open(path, "rb") as opened:
            content = opened.read()
        whole.update(f"{name}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()[:_DIGITS]


def _source_files(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    """(name below the package, path); links are followed, as a checkout has some of its folders by links."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _source_files(entry.path, f"{prefix}{entry.name}/")
            elif os.path.splitext(entry.name)[1] in _SOURCES:
                yield f"{prefix}{entry.name}", entry.path


def users_code(passes: Sequence[Pass]) -> str:
    """The files with passes and natives that are not of this library, and the modules of the user that they import.

    Args:
      passes: the passes the user asked for, with the rule files they apply.

    Returns:
      Names and digests, such as ``natives.py 0f3a...``; empty if all is of this library.
    """
    first = [sys.modules.get(name) for name in sorted({type(step).__module__ for step in passes}
                                                      | {function.__module__ for function in _natives(passes)})]
    users = [module for module in first if module is not None and not _is_own(module.__name__)]
    roots = {_top(module.__name__) for module in users}
    found = reachable(users, lambda module: [each for each in _imported(module) if _is_users(each, roots)],
                      key=lambda module: module.__name__)
    return ", ".join(sorted(filter(None, map(_module_content, found))))


def _natives(passes: Sequence[Pass]) -> list[Callable[..., object]]:
    """The functions that the rule files of passes declare, except for shipped files."""
    names: set[str] = set()
    for file in (file for step in passes for file in getattr(step, "files", ())):
        try:
            source = read_source(file)
            names |= set() if source.shipped else set(checked(source)[1])
        except HlorewriteError:  # its content differs from that of a file that a plan was made with
            continue
    return [function for name in sorted(names) if (function := NATIVES.find(name)) is not None]


def _is_own(name: str) -> bool:
    return _top(name) == _OWN or name in NATIVES.shipped


def _is_users(module: ModuleType, roots: Iterable[str]) -> bool:
    """Whether a module is the user's: not of Python, nor installed apart from what the pass or native belongs to."""
    file, top = getattr(module, "__file__", None), _top(module.__name__)
    if not file or _is_own(module.__name__) or top in sys.stdlib_module_names or not file.endswith(".py"):
        return False
    return top in roots or not any(part in _INSTALLED for part in Path(file).parts)


def _imported(module: ModuleType) -> list[ModuleType]:
    """The modules that a module's source imports, as far as they are loaded."""
    tree, names = _tree(module), list[str]()
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[:len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    parents = {part for name in names for part in _with_parents(name)}
    return [sys.modules[name] for name in sorted(parents) if isinstance(sys.modules.get(name), ModuleType)]


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _tree(module: ModuleType) -> ast.Module | None:
    try:
        return ast.parse(Path(str(getattr(module, "__file__", ""))).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _module_content(module: ModuleType) -> str:
    """A module by the name of its file and a digest of it; by what it is called where it has none."""
    file = str(getattr(module, "__file__", "") or "")
    if not os.path.isfile(file):
        return f"{module.__name__} without a file"
    with open(file, "rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()[:_DIGITS]
    shown = os.path.basename(file) if os.sep in module.__name__ else module.__name__
    return f"{shown} {digest}"


def _top(name: str) -> str:
    return name.partition(".")[0]
