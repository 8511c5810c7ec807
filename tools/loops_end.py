"""Finds loops that do not say why they end: every ``while``, and every ``for`` over a list that its body lengthens.

``python tools/loops_end.py [FILE...]`` looks at the whole package by default. A loop says it in a comment that starts
with "Ends:", on its own line or on the lines directly above. Exit code 1 when one does not.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def open_loops(source: str) -> Iterator[int]:
    """The lines of the loops of a source that do not say why they end.

    Args:
      source: Python source.

    Example:
      >>> list(open_loops("while x:\\n    x -= 1\\n"))
      [1]
      >>> list(open_loops("while x:  # Ends: x falls.\\n    x -= 1\\n"))
      []
    """
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        is_open = isinstance(node, ast.While) or (isinstance(node, ast.For) and _lengthens(node))
        if is_open and not _says(lines, node.lineno):
            yield node.lineno


def _says(lines: list[str], number: int) -> bool:
    near = [lines[number - 1]]
    above = number - 2
    while above >= 0 and lines[above].lstrip().startswith("#"):  # Ends: goes to the line above.
        near.append(lines[above])
        above -= 1
    return any("ends: " in line.lower() for line in near)


def _lengthens(loop: ast.For) -> bool:
    """Whether a loop adds to the list it goes through."""
    if not isinstance(loop.iter, ast.Name):
        return False
    name = loop.iter.id
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return True
        called = node.func if isinstance(node, ast.Call) else None
        if (isinstance(called, ast.Attribute) and called.attr in ("append", "extend")
                and isinstance(called.value, ast.Name) and called.value.id == name):
            return True
    return False


def main() -> int:
    """Prints the loops; 1 when there is one."""
    files = [Path(name) for name in sys.argv[1:]] or sorted(
        path for folder in ("hlorewrite", "passes", "patterns") for path in (ROOT / folder).rglob("*.py")
        if "__pycache__" not in path.parts)
    found = 0
    for path in files:
        for line in sorted(open_loops(path.read_text("utf-8"))):
            found += 1
            shown = path.resolve().relative_to(ROOT) if path.resolve().is_relative_to(ROOT) else path
            print(f'{shown}:{line}: the loop does not say why it ends; write "# Ends: ..." above it')
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
