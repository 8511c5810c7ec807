"""From MLIR locations to the line a user wrote."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from hlorewrite.ir.binding import ir
from hlorewrite.util.frames import USUAL_FRAMES, Frames

_QUOTED = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_FILE_LINE = re.compile(_QUOTED + r":(\d+):(\d+)")
_FUNCTION = re.compile(_QUOTED + r'\("[^"]*":\d')

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


def source_lines(location: ir.Location, frames: Frames = USUAL_FRAMES) -> SourceLines:
    """The user's line of an op, and the line of the library that made it.

    JAX nests locations: ``"psum"(callsite("body"("train.py":13:14) at ...))``.

    Args:
      location: the location of an op.
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
    stack = _stack(location)
    innermost = next(stack, None)
    if innermost is None:
        return SourceLines(UNKNOWN)
    chosen = next((frame for frame in chain((innermost,), stack) if frames.are_own(frame[0])), innermost)
    return SourceLines(_shown(chosen), _shown(innermost) if chosen != innermost else "")


def _stack(location: ir.Location) -> Iterator[tuple[str, int, int]]:
    """(file, line, column) of the frames of an op, innermost first; printing the location takes far longer."""
    pending: list[object] = [location]
    # Ends: what is pushed is part of what was taken.
    while pending:
        part = pending.pop()
        part = part[0].caller if isinstance(part, tuple) else part
        if isinstance(part, ir.FileLineColLoc):
            yield part.filename, part.start_line, part.start_col
        elif isinstance(part, ir.NameLoc):
            pending.append(part.child_loc)
        elif isinstance(part, ir.CallSiteLoc):
            pending += (part,), part.callee  # most often the callee says enough
        elif isinstance(part, ir.FusedLoc):
            pending += reversed(part.locations)


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
    return location.name_str if isinstance(location, ir.NameLoc) and \
        isinstance(location.child_loc, ir.UnknownLoc) else ""


def _shown(frame: Sequence[str | int]) -> str:
    name, line, column = frame
    return f"{shown_path(str(name))}:{line}:{column}"


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
    return location.name_str if isinstance(location, ir.NameLoc) and \
        not isinstance(location.child_loc, ir.UnknownLoc) else ""


def stamped(location: ir.Location, rule: str) -> ir.Location:
    """A location that names the rule or pass that made an op and keeps where it came from.

    Args:
      location: the location of the op it replaces.
      rule: the rule's or pass's name.

    Returns:
      ``loc("hlorewrite.RULE"(location))``; XLA shows it in the op metadata.
    """
    name = f"hlorewrite.{rule}"
    if isinstance(location, ir.NameLoc) and location.name_str == name:
        return location
    return ir.Location.name(name, childLoc=location, context=location.context)
