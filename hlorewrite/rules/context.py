"""The first argument of natives of rewrite rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from hlorewrite.analysis.groups import Groups
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import UserIndex, View, ir, nested_ops
from hlorewrite.rules.match_failure import Answer


@dataclass(frozen=True)
class RuleContext:
    """The first argument of natives of rewrite rules; those of linearity facts get a ``FactContext``.

    Attributes:
      view: the index of the module.
      allow_reassociation: whether rules may change floating-point numbers, as their `floats` says.
      allow_narrow_range: whether they may do so for floats of a narrow range, which may then overflow or underflow.
      every_partner: whether matching also tries pairs that an index rules out, and reports why they do not match.
      uniform_over: whether a value is equal on all devices of each group of a collective; by default a new
        ``analysis.uniform.Uniformity`` is asked.
    """

    view: View
    allow_reassociation: bool = True
    allow_narrow_range: bool = True
    every_partner: bool = False
    uniform_over: Callable[[ir.Value, ir.Operation], Answer] | None = None
    _uniformities: dict[object, Uniformity] = field(default_factory=dict, repr=False, compare=False)
    _readers: dict[object, UserIndex] = field(default_factory=dict, repr=False, compare=False)

    def uniformity(self, groups: Groups) -> Uniformity:
        """The uniformity analysis over some groups; made once, and kept while rules preserve the values."""
        known = self._uniformities.get(groups.key)
        if known is None:
            known = self._uniformities[groups.key] = Uniformity(self.view, groups)
        return known

    def readers(self, of: object, names: frozenset[str], key: Callable[[RuleContext, ir.Operation], Hashable]
                ) -> UserIndex:
        """The index of the ops that may be partners in a pair; made once for each pattern.

        Args:
          of: the pattern.
          names: the names of its ops.
          key: the function whose value is equal for both ops of a pair.
        """
        known = self._readers.get(of)
        if known is None:
            known = self._readers[of] = UserIndex(names, lambda op: key(self, op))
        return known

    def inserted(self, op: ir.Operation) -> None:
        """Called after an op, with its regions, is inserted into the module."""
        for index in self._readers.values():
            index.inserted(op)

    def replacing(self, old: ir.Value, new: ir.Value) -> None:
        """Called before the readers of a value read another one."""
        for index in self._readers.values():
            index.replacing(old, new)

    def erasing(self, op: ir.Operation) -> None:
        """Called before an op, with its regions, leaves the module; forgets everything about its values."""
        for index in self._readers.values():
            index.erasing(op)
        for known in self._uniformities.values():
            for inner in nested_ops(op):
                for value in inner.results:
                    known.forget(value)
                for region in inner.regions:
                    for block in region.blocks:
                        for argument in block.arguments:
                            known.forget(argument)

    def changed(self) -> None:
        """Called after a rule changes or moves an op in place, so its values may differ."""
        for index in self._readers.values():
            index.clear()
        self._uniformities.clear()

    def release(self) -> None:
        """Frees all cached facts when no rule asks any more; a reference cycle through the indexes would keep them."""
        self._readers.clear()
        self._uniformities.clear()
