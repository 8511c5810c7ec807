"""Conditions taken away from the source for the length of one test, and what a program is then rewritten to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from generators.code_mutation import replace_source

from hlorewrite.checks.reference.check import compare
from hlorewrite.checks.reference.inputs import random_inputs
from hlorewrite.checks.reference.program import prepare
from hlorewrite.errors import CannotExecute, HlorewriteError
from hlorewrite.ir.load import parse
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
      whole: the module's text, when it is not a manual region.
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


def mutate(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the condition away for the length of one test."""
    replace_source(mutation.module, mutation.old, mutation.new, monkeypatch)


def check_condition(mutation: Mutation, make_region: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the condition nothing moves or the values stay; without it they do not."""
    text = mutation.text(make_region)
    assert outcome(text, mutation.executed, mutation.pipeline) in ("unchanged", "equal")
    mutate(mutation, monkeypatch)
    assert outcome(text, mutation.executed, mutation.pipeline) == ("wrong" if mutation.executed else "moved")


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
            actual = prepare(after, "main", like=original).run(inputs)
        except CannotExecute:
            return "wrong"
        if not compare(expected, actual, "main", 1e-4).equal:
            return "wrong"
    return "equal"
