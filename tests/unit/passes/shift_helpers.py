"""Runs comm-shift over a module in short form and judges it by the oracle."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spmd_helpers import module

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, ancestors
from hlorewrite.passes.comm_shift import CommShift
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.rules.listener import Recorder


@dataclass(frozen=True)
class Shifted:
    """What comm-shift made of a module.

    Attributes:
      before: the module as it was.
      after: the rewritten module.
      changed: whether the pass says that it changed.
      remarks: kind and sentence of each remark.
      counters: what it counted.
    """

    before: Module
    after: Module
    changed: bool
    remarks: list[tuple[str, str]]
    counters: dict[str, int]

    def reductions(self, name: str = "all_reduce") -> list[int]:
        """For each reduction, how many loops it stands in."""
        return [sum(parent.name == "stablehlo.while" for parent in ancestors(op))
                for op in View(self.after).ops(f"stablehlo.{name}")]

    def carried(self) -> list[int]:
        """How many values each loop carries."""
        return [len(op.results) for op in View(self.after).ops("stablehlo.while")]


def shift(text: str, options: CommShift | None = None, *, settles: bool = True) -> Shifted:
    """Runs the pass, and makes sure of its values and (``settles``) that another run finds nothing to do."""
    before = module(text).module
    after = before.clone()
    recorder = Recorder(wants_missed=True)
    context = PassContext((recorder,))
    passed = options or CommShift()
    changed = run_passes(after, [passed], context)
    assert not after.verify()
    assert changed == (after.text() != before.text())
    if changed and passed.wire_dtype is None:
        report = check(before, after)
        assert report.equal, report.table()
        again = after.clone()
        assert run_passes(again, [passed], PassContext()) is (again.text() != after.text())
        assert not settles or again.text() == after.text()
    remarks = [(remark.kind, re.sub(r" at \S+", "", remark.sentence)) for remark in recorder.remarks]
    return Shifted(before, after, changed, remarks, {name: n for (_, name), n in context.counters.items()})
