"""From MLIR locations to the line a user wrote."""

from __future__ import annotations

import os
import re

from hlorewrite.ir.binding import ir

_FILE_LINE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')

UNKNOWN = "?"
"""Shown for what has no source line."""


def source_line(location: ir.Location) -> str:
    """Where the user wrote it, as ``file:line:col``; ``?`` when the module does not say.

    JAX nests locations (``"psum"(callsite("body"("train.py":13:14) at ...))``): the innermost frame of the user's
    code comes first in the text, so the first file position is the answer.

    Args:
      location: the location of an op.

    Returns:
      Text such as ``train.py:13:14``, relative to the current folder where the file lies below it.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     source_line(ir.Location.name("psum", ir.Location.file("train.py", 13, 14)))
      'train.py:13:14'
    """
    return line_of_text(str(location))


def line_of_text(text: str) -> str:
    """The same from the printed form of a location."""
    match = _FILE_LINE.search(text)
    if not match:
        return UNKNOWN
    name, line, column = match.groups()
    return f"{shown_path(name)}:{line}:{column}"


def shown_path(name: str) -> str:
    """A file name without the part that differs between machines.

    Args:
      name: a path as JAX recorded it, usually absolute.

    Returns:
      The path below the current folder or below ``site-packages``; otherwise its last component.
    """
    if not os.path.isabs(name):
        return name
    for root in (os.getcwd(), *_package_roots(name)):
        if name.startswith(root.rstrip("/") + "/"):
            return os.path.relpath(name, root)
    return os.path.basename(name)


def _package_roots(name: str) -> tuple[str, ...]:
    marker = "/site-packages/"
    return (name[:name.index(marker) + len(marker)],) if marker in name else ()


def op_name(location: ir.Location) -> str:
    """The name JAX gave an op (``transpose(jvp())/dot_general``), or an empty string."""
    match = re.match(r'loc\("((?:[^"\\]|\\.)*)"\(', str(location))
    return match.group(1) if match else ""


def stamped(location: ir.Location, rule: str) -> ir.Location:
    """A location that names the rule or pass that made an op and keeps where it came from.

    Args:
      location: the location of the op it replaces.
      rule: the rule's or pass's name.

    Returns:
      ``loc("hlorewrite.RULE"(location))``; XLA shows it in the op metadata.
    """
    name = f"hlorewrite.{rule}"
    if str(location).startswith(f'loc("{name}"'):
        return location
    return ir.Location.name(name, childLoc=location, context=location.context)
