"""Takes conditions away from the source, for the length of one test.

A mutation replaces one snippet of a module's source; the functions get the new code. A snippet that does not occur
exactly once fails the test: then the mutation must follow the source.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType

import pytest

from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.oracle.compare import compare
from hlorewrite.oracle.errors import CannotExecute
from hlorewrite.oracle.inputs import random_inputs
from hlorewrite.oracle.program import prepare
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline


@dataclass(frozen=True)
class Mutation:
    """One condition taken away.

    Attributes:
      module: where it is.
      old: its source; occurs once.
      new: the source without it.
      body: a region that needs it.
      out: what the region returns.
      functions: further functions of the module.
      mesh: sizes of the mesh axes.
      kind: the type returned.
      whole: the module's text, when it is no manual region.
      executed: whether the interpreter can run the instance; if not, it only shows that the condition alone refuses.
      pipeline: what is run.
    """

    module: str
    old: str
    new: str
    body: str = ""
    out: str = "%l#1"
    functions: str = ""
    mesh: tuple[int, ...] = (2,)
    kind: str = "tensor<4xf32>"
    whole: str = ""
    executed: bool = True
    pipeline: str = "comm-shift"

    def text(self, make_region: Callable[..., str]) -> str:
        """The instance."""
        if self.whole:
            return make_region.__globals__["expand"](self.whole)
        return make_region(self.body, self.out, self.kind, self.mesh, self.functions)


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


def mutate(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the functions of a module the code they have with the snippet replaced."""
    module = importlib.import_module(mutation.module)
    source = inspect.getsource(module)
    assert source.count(mutation.old) == 1, "the source has changed: adapt the mutation"
    changed = ModuleType(module.__name__)
    exec(compile(source.replace(mutation.old, mutation.new), f"<{mutation.module}, mutated>", "exec"), vars(changed))
    new = dict(functions_of(changed))
    different = 0
    for name, function in functions_of(module):
        code = new[name].__code__
        if (code.co_code, code.co_consts, code.co_names) != (function.__code__.co_code, function.__code__.co_consts,
                                                              function.__code__.co_names):
            monkeypatch.setattr(function, "__code__", code)
            different += 1
    assert different


def outcome(text: str, executed: bool, pipeline: str) -> str:
    """``unchanged``, ``equal`` or ``wrong`` after comm-shift; ``moved`` where the interpreter is not asked."""
    before = parse(text)
    after = before.clone()
    try:
        run_passes(after, parse_pipeline(pipeline), PassContext())
    except HlorewriteError:
        return "wrong" if executed else "moved"
    if str(after.mlir) == str(before.mlir):
        return "unchanged"
    if not executed:
        return "moved"
    original = prepare(before, "main")
    for seed in range(3):
        inputs = random_inputs(original, seed)
        expected = original.run(inputs)
        assert not expected.diverged
        try:
            actual = prepare(after, "main").run(inputs)
        except CannotExecute:
            return "wrong"
        if not compare(expected, actual, "main", 1e-4).equal:
            return "wrong"
    return "equal"
