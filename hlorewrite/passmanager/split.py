"""``--split-input-file``: several modules in one file, divided by ``// -----`` lines."""

from __future__ import annotations

import re

SEPARATOR = "// -----"
_LINE = re.compile(r"^\s*// -----\s*$")


def split_text(text: str) -> list[tuple[int, str]]:
    """The parts of a file, each with the line it starts on.

    Args:
      text: the whole file.

    Returns:
      (first line, text) of each part; one part when there is no separator.

    Example:
      >>> split_text("a\\n// -----\\nb\\n")
      [(1, 'a\\n'), (3, 'b\\n')]
    """
    parts: list[tuple[int, list[str]]] = [(1, [])]
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if _LINE.match(line):
            parts.append((number + 1, []))
        else:
            parts[-1][1].append(line)
    return [(first, "".join(lines)) for first, lines in parts]
