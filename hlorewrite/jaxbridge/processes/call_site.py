"""The object that a Python frame is calling: a call of C++ leaves no frame, but its name is in the source."""

import ast
import builtins
import inspect
import itertools
import linecache
from types import FrameType
from typing import Any


def called_object(frame: FrameType) -> Any | None:
    """The object that a frame's present instruction calls, if that is a name or an attribute of one.

    Reads names and attributes without running any code of the user's.

    Args:
      frame: a frame, of any thread.

    Returns:
      The object; None if the instruction is not a call, or its source is not there.

    Example:
      >>> import sys
      >>> called_object(sys._getframe()) is called_object  # what this line is calling at that moment
      True
    """
    call = _call_at(frame)
    return None if call is None else _value(call.func, frame)


def called_method(frame: FrameType) -> str:
    """The name of the method that a frame's present instruction calls, whatever its object is; empty for none."""
    call = _call_at(frame)
    return call.func.attr if call is not None and isinstance(call.func, ast.Attribute) else ""


def arguments(frame: FrameType) -> list[Any]:
    """Arguments of a frame's present call that the source names: names, or attributes of one."""
    call = _call_at(frame)
    if call is None:
        return []
    given = [*call.args, *(each.value for each in call.keywords)]
    return [_value(each, frame) for each in given if isinstance(each, ast.Name | ast.Attribute)]


def _call_at(frame: FrameType) -> ast.Call | None:
    """The call expression at a frame's present instruction."""
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if positions is None or None in positions:
        return None
    first, last, begin, end = (int(number or 0) for number in positions)
    lines = [linecache.getline(frame.f_code.co_filename, number).encode() for number in range(first, last + 1)]
    if not all(lines):
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    try:
        made = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):  # the file has changed since it was loaded
        return None
    return made if isinstance(made, ast.Call) else None


def _value(name: ast.expr, frame: FrameType) -> Any | None:
    """What a name or an attribute stands for; properties and descriptors are not run."""
    if isinstance(name, ast.Name):
        for scope in (frame.f_locals, frame.f_globals, vars(builtins)):
            if name.id in scope:
                return scope[name.id]
        return None
    if not isinstance(name, ast.Attribute):
        return None
    owner = _value(name.value, frame)
    return None if owner is None else inspect.getattr_static(owner, name.attr, None)
