"""Takes one condition out of a module's source, for the length of a test."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator, Sequence
from types import FunctionType, ModuleType

import pytest


def functions_of(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods a module defines."""
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            yield name, value
        elif inspect.isclass(value) and value.__module__ == module.__name__:
            for attribute, member in vars(value).items():
                inner = member.fget if isinstance(member, property) else (
                    member.func if isinstance(member, functools.cached_property) else member)
                if inspect.isfunction(inner):
                    yield f"{name}.{attribute}", inner


def replace_source(name: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch,
                   more: Sequence[tuple[str, str]] = ()) -> None:
    """Gives the functions of a module the code they have with a snippet replaced.

    Args:
      name: the module.
      old: the snippet; it occurs once, or the test has to follow the source.
      new: what stands there instead.
      monkeypatch: puts the code back.
      more: other snippets to replace as well, each with its replacement.
    """
    module = importlib.import_module(name)
    source = inspect.getsource(module)
    for snippet, instead in ((old, new), *more):
        assert source.count(snippet) == 1, "the source has changed: adapt the mutation"
        source = source.replace(snippet, instead)
    changed = ModuleType(module.__name__)
    exec(compile(source, f"<{name}, mutated>", "exec"), vars(changed))
    renewed = dict(functions_of(changed))
    different = 0
    for each, function in functions_of(module):
        code = renewed[each].__code__
        if (code.co_code, code.co_consts, code.co_names) != (function.__code__.co_code, function.__code__.co_consts,
                                                              function.__code__.co_names):
            monkeypatch.setattr(function, "__code__", code)
            different += 1
    assert different
