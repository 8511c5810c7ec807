"""What checks are run with: the view for rewrite rules, the analysis' own facts for linearity facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hlorewrite.ir.binding import ir
from hlorewrite.ir.view import View
from hlorewrite.rules.answers import Answer, No


class LinearContext(Protocol):
    """What an analysis of deferred reductions offers to the checks of linearity facts.

    A native declared with the target ``context:NAME`` is the method of that name; its arguments are those of the
    declaration.
    """

    def uniform(self, value: ir.Value) -> Answer:
        """Whether a value is the same on every device of a group."""
        ...

    def is_zero(self, value: ir.Value) -> Answer:
        """Whether every element of a value is known to be zero."""
        ...

    def exact_or_wider_convert(self, op: ir.Operation) -> Answer:
        """Whether a convert may be moved across a sum: it loses nothing, or policy allows what it loses."""
        ...


def _unknown(value: ir.Value, groups: ir.Attribute) -> Answer:
    return No("whether the value is the same on every device is not known here")


@dataclass(frozen=True)
class RuleContext:
    """What the natives of rewrite rules are called with.

    Attributes:
      view: the index of the module.
      allow_reassociation: whether rules may change the order of floating-point sums.
      uniform_over: answers whether a value is equal on all devices of replica groups.
    """

    view: View
    allow_reassociation: bool = True
    uniform_over: Callable[[ir.Value, ir.Attribute], Answer] = _unknown
