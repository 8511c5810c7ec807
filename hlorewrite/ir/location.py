"""From MLIR locations to the line a user wrote."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.ir.binding import ir
from hlorewrite.util.frames import USUAL_FRAMES, Frames

_QUOTED = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_FILE_LINE = re.compile(_QUOTED + r":(\d+):(\d+)")
_FUNCTION = re.compile(_QUOTED + r'\("[^"]*":\d')
_ARGUMENT = re.compile(rf"loc\({_QUOTED}(?:\(unknown\))?\)")
_NAME = re.compile(rf"loc\({_QUOTED}\(")

UNKNOWN = "?"
"""Shown for ops without a source line."""


@dataclass(frozen=True)
class SourceLines:
    """Where an op comes from.

    Attributes:
      own: the innermost frame that is the user's own, ``file:line:col``; without one, the innermost; ``?`` for none.
      framework: the innermost frame, when that is another one.
    """

    own: str
    framework: str = ""


def source_lines(location: ir.Location | str, frames: Frames = USUAL_FRAMES) -> SourceLines:
    """The user's line of an op, and the line of the library that made it.

    JAX nests locations (``"psum"(callsite("body"("train.py":13:14) at ...))``): the frames come in the text innermost
    first.

    Args:
      location: the location of an op, or its text.
      frames: which frames are the user's own.

    Returns:
      Lines such as ``train.py:13:14``, relative to the current folder, or to the folder of installed packages, where
      the file lies below it.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     inner = ir.Location.file("/lib/python3.11/site-packages/flax/linear.py", 97, 12)
      ...     source_lines(ir.Location.callsite(inner, [ir.Location.file("train.py", 13, 14)]))
      SourceLines(own='train.py:13:14', framework='flax/linear.py:97:12')
    """
    stack = _FILE_LINE.findall(str(location))
    if not stack:
        return SourceLines(UNKNOWN)
    chosen = next((frame for frame in stack if frames.are_own(frame[0])), stack[0])
    return SourceLines(_shown(chosen), _shown(stack[0]) if chosen != stack[0] else "")


def source_line(location: ir.Location) -> str:
    """The user's line alone: ``file:line:col``; ``?`` when the module does not say.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     source_line(ir.Location.name("psum", ir.Location.file("train.py", 13, 14)))
      'train.py:13:14'
    """
    return source_lines(location).own


def outer_function(location: ir.Location) -> str:
    """The qualified name of the outermost function among the frames of an op; empty if no frame names one.

    Args:
      location: the location of the op.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     inner, outer = (ir.Location.name(name, ir.Location.file("train.py", line, 2))
      ...                     for name, line in (("loss", 3), ("make.<locals>.step", 8)))
      ...     outer_function(ir.Location.name("psum", ir.Location.callsite(inner, [outer])))
      'make.<locals>.step'
    """
    names = [name for name in _FUNCTION.findall(str(location)) if not name.startswith("<")]
    return names[-1] if names else ""


def line_of_text(text: str) -> str:
    """The innermost frame, from the printed form of a location."""
    match = _FILE_LINE.search(text)
    return _shown(match.groups()) if match else UNKNOWN


def argument_path(location: ir.Location) -> str:
    """JAX's name for an argument of a step, ``params['w']``; empty if the location is not a name.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     argument_path(ir.Location.name("params['w']")), argument_path(ir.Location.file("t.py", 1, 2))
      ("params['w']", '')
    """
    match = _ARGUMENT.fullmatch(str(location))
    return match.group(1).replace('\\"', '"') if match else ""


def _shown(frame: Sequence[str]) -> str:
    name, line, column = frame
    return f"{shown_path(name)}:{line}:{column}"


def shown_path(name: str) -> str:
    """A file name without the part that differs between machines.

    Args:
      name: a path as JAX recorded it, usually absolute.

    Returns:
      The path below ``site-packages`` or below the current folder; otherwise its last component.
    """
    if not os.path.isabs(name):
        return name
    for root in (*_package_roots(name), os.getcwd()):
        folder = root.rstrip("/") + "/"
        if name.startswith(folder):
            return os.path.normpath(name.removeprefix(folder))
    return os.path.basename(name)


def _package_roots(name: str) -> tuple[str, ...]:
    marker = "/site-packages/"
    return (name[:name.index(marker) + len(marker)],) if marker in name else ()


def op_name(location: ir.Location) -> str:
    """The name JAX gave an op (``transpose(jvp())/dot_general``), or an empty string."""
    match = _NAME.match(str(location))
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
