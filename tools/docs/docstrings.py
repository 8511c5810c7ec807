"""What docstrings mean, as Sphinx reads it: an indented block after a paragraph is code."""

from __future__ import annotations

import re

_LIST = re.compile(r"\s*(?:[*-]|\d+\.)\s")


def with_code_blocks(lines: list[str]) -> list[str]:
    """A docstring with a ``::`` before each block that is indented by four or more after a blank line.

    Sections of Google's style have no blank line after their title, and what continues a list item is not code.

    Example:
      >>> with_code_blocks(["It runs:", "", "    f(*x)", "", "and ends."])
      ['It runs:', '', '::', '', '    f(*x)', '', 'and ends.']
    """
    out: list[str] = []
    for at, line in enumerate(lines):
        before = next((text for text in reversed(lines[:at]) if text.strip()), "")
        opens = line.startswith("    ") and at > 0 and not lines[at - 1].strip()
        if opens and before and not before.startswith(" ") and not before.endswith("::") and not _LIST.match(before):
            out += ["::", ""]
        out.append(line)
    return out
