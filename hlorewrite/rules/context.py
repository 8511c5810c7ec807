"""What the natives of rewrite rules are called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlorewrite.ir.binding import ir
from hlorewrite.ir.view import View
from hlorewrite.rules.answers import Answer


@dataclass(frozen=True)
class RuleContext:
    """What the natives of rewrite rules are called with, first; those of linearity facts get a ``FactContext``.

    Attributes:
      view: the index of the module.
      allow_reassociation: whether rules may change the order of floating-point sums.
      uniform_over: whether a value is equal on all devices of each group of a collective; by default the uniformity
        analysis of ``spmd`` is asked afresh.
    """

    view: View
    allow_reassociation: bool = True
    uniform_over: Callable[[ir.Value, ir.Operation], Answer] | None = None
