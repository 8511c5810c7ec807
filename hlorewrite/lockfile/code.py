"""The code that a plan was made by, by content: this library, and the passes and natives of the user.

A version does not change with each edit, and the name of a file says nothing of what is in it. If any of this code
differs, the passes may make a different module, so the plan does not fit.
"""

import ast
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from hlorewrite.errors import HlorewriteError
from hlorewrite.passmanager.base import Pass
from hlorewrite.rules.library import checked, read_source
from hlorewrite.rules.register import NATIVES
from hlorewrite.util.reachability import reachable

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
    return ", ".join(sorted(filter(None, map(_content, found))))


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


def _content(module: ModuleType) -> str:
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
