"""Finds calls and functions with more than six positional arguments: which one is which is no longer seen there.

``python tools/positional.py`` prints each and exits 1 when there is one. Name the arguments from the fourth on, or put
those that belong together into a dataclass; ``*`` makes parameters names only.

Calls that give a list of words (``_sdy("module", "cse", "inline", ...)``) are none of them, nor are calls of JAX's
own functions in ``PRIVATE``.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # what tools share, when a test imports this file

from syntax_nodes import all_nodes

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("hlorewrite", "passes", "patterns")
PRIVATE = ("hlorewrite/jaxbridge/xla/private.py",)
"""Files that call functions of JAX that take no names."""
MOST = 6
LEFT = ("hlorewrite/jaxbridge/baseline/measured.py",
        "hlorewrite/jaxbridge/choose/chosen_step.py", "hlorewrite/jaxbridge/choose/planned.py",
        "hlorewrite/jaxbridge/choose/planned.py", "hlorewrite/tune/choice.py")
"""Files in which some are left. No file may be added, and one without any leaves the list."""


def too_many(source: str) -> Iterator[tuple[int, str]]:
    """(line, what) of each call and definition.

    Args:
      source: Python source.

    Example:
      >>> list(too_many("f(1, 2, 3, 4, 5, 6, 7)"))
      [(1, 'f is called with 7 positional arguments')]
      >>> list(too_many("f(1, 2, 3, 4, 5, 6, g=7)")), list(too_many("f(1, 'a', 'b', 'c', 'd', 'e', 'f', 'g')"))
      ([], [])
    """
    nodes = all_nodes(ast.parse(source))
    methods = {id(each) for node in nodes if isinstance(node, ast.ClassDef) for each in node.body}
    for node in nodes:
        if isinstance(node, ast.Call):
            words = all(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in node.args[1:])
            count = sum(not isinstance(each, ast.Starred) for each in node.args)
            if count > MOST and not words:
                yield node.lineno, f"{ast.unparse(node.func)} is called with {count} positional arguments"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            count = len(node.args.posonlyargs) + len(node.args.args) - (id(node) in methods)
            if count > MOST:
                yield node.lineno, f"{node.name} takes {count} positional arguments"


def check(root: Path = ROOT) -> list[str]:
    """One sentence for each, in the files of the package."""
    paths = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    found = {name: list(too_many(path.read_text(encoding="utf-8"))) for path in paths
             if (name := path.relative_to(root).as_posix()) not in PRIVATE}
    sentences = [f"{name}:{line}: {what}; name those from the fourth on" for name, rows in found.items()
                 if name not in LEFT for line, what in rows]
    return sentences + [f"{name} has none any more: take it out of LEFT" for name in LEFT
                        if name in found and not found[name]]


if __name__ == "__main__":
    gc.disable()  # a tree has no circles
    found = check()
    print("\n".join(found) or "no call and no function has more than six positional arguments")
    sys.exit(1 if found else 0)
