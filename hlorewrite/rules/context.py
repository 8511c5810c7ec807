"""What the natives of rewrite rules are called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hlorewrite.ir.binding import ir
from hlorewrite.ir.view import View, nested_ops
from hlorewrite.rules.answers import Answer
from hlorewrite.spmd.groups import Groups
from hlorewrite.spmd.uniform import Uniformity


@dataclass(frozen=True)
class RuleContext:
    """What the natives of rewrite rules are called with, first; those of linearity facts get a ``FactContext``.

    Attributes:
      view: the index of the module.
      allow_reassociation: whether rules may change floating-point numbers, as their `floats` says.
      uniform_over: whether a value is equal on all devices of each group of a collective; by default the uniformity
        analysis of ``spmd`` is asked afresh.
    """

    view: View
    allow_reassociation: bool = True
    uniform_over: Callable[[ir.Value, ir.Operation], Answer] | None = None
    _uniformities: dict[object, Uniformity] = field(default_factory=dict, repr=False, compare=False)

    def uniformity(self, groups: Groups) -> Uniformity:
        """The uniformity analysis over some groups; made once, and kept while rules keep what values compute."""
        known = self._uniformities.get(groups.key)
        if known is None:
            known = self._uniformities[groups.key] = Uniformity(self.view, groups)
        return known

    def erasing(self, op: ir.Operation) -> None:
        """An op (with all it holds) is about to leave the module: nothing is known of its values any more."""
        for known in self._uniformities.values():
            for inner in nested_ops(op):
                for value in inner.results:
                    known.forget(value)
                for region in inner.regions:
                    for block in region.blocks:
                        for argument in block.arguments:
                            known.forget(argument)

    def changed(self) -> None:
        """A rule has changed an op in place, so values may be other ones than before."""
        self._uniformities.clear()
