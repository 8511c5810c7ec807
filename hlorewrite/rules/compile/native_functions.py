"""From declared natives to the Python functions that implement them."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hlorewrite.errors import RuleCheckError
from hlorewrite.rules.register import NATIVES
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
      RuleCheckError: no function is registered under the name, or it takes another number of arguments.
    """
    return {key: NativeFunction(native, _function(native, name)) for key, native in natives.items()}


def _function(native: ast.Native, file: str) -> Callable[..., Any]:
    where = f"{file}:{native.span.line + len(native.docs)}:{native.span.column}"  # docs come before the line
    function = NATIVES.find(native.name)
    if function is None:
        raise RuleCheckError(f"no native is registered as `{native.name}`", location=where,
                             hint="load what registers it: --load=FILE.py or --natives=MODULE, or import it in Python")
    variadic = bool(native.parameters) and native.parameters[-1].variadic
    expected = 1 + len(native.parameters) - variadic
    try:
        inspect.signature(function).bind(*[None] * (expected + variadic))
    except (TypeError, ValueError):  # ValueError: a C function without a signature
        raise RuleCheckError(f"`{native.name}`: {function.__name__} does not take the context and "
                             f"{len(native.parameters)} arguments", location=where,
                             hint="declare the function's arguments") from None
    return function
