"""From declared natives to the Python functions behind them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hlorewrite.errors import RuleCheckError, did_you_mean
from hlorewrite.rules.syntax import ast


@dataclass(frozen=True)
class NativeFunction:
    """A declared native and its function; the function's first argument is the context."""

    declared: ast.Native
    function: Callable[..., Any]


def bind(natives: Mapping[str, ast.Native], name: str) -> dict[str, NativeFunction]:
    """Finds the functions of declared natives.

    Args:
      natives: the declarations by name.
      name: the file, for messages.

    Raises:
      RuleCheckError: a module or function is not there, or takes another number of arguments.
    """
    return {key: NativeFunction(native, _function(native, name)) for key, native in natives.items()}


def _function(native: ast.Native, file: str) -> Callable[..., Any]:
    where = f"{file}:{native.span.line}:{native.span.column}"
    module_name, _, function_name = native.target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise RuleCheckError(f"`{native.name}`: module {module_name} cannot be imported ({error})", location=where,
                             hint="correct the target, or install the package") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        known = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise RuleCheckError(f"`{native.name}`: {module_name} has no function `{function_name}`", location=where,
                             hint=did_you_mean(function_name, known))
    variadic = bool(native.parameters) and native.parameters[-1].variadic
    expected = 1 + len(native.parameters) - variadic
    try:
        inspect.signature(function).bind(*[None] * (expected + variadic))
    except TypeError:
        raise RuleCheckError(f"`{native.name}`: {function_name} does not take the context and "
                             f"{len(native.parameters)} arguments", location=where,
                             hint="declare what the function takes") from None
    return function
