"""The answers of native predicates and analyses: True or a value, or a sentence that says why not, with the op."""

from dataclasses import dataclass
from typing import Literal

from hlorewrite.ir.binding import ir


@dataclass(frozen=True)
class MatchFailure:
    """A check does not hold.

    Attributes:
      sentence: why, without a final full stop.
      culprit: the op at fault, if there is one. You can also pass a value or ``value.owner``; it becomes the op that
        defines the value or, for an argument, the op around its block.

    Example:
      >>> bool(MatchFailure("the value is read elsewhere"))
      False
    """

    sentence: str
    culprit: ir.Operation | None = None

    def __post_init__(self) -> None:
        at: object = self.culprit
        while at is not None and not isinstance(at, ir.Operation):  # Ends: a value has an owner, and a block an op.
            if not isinstance(at, ir.Value | ir.Block | ir.OpView):
                raise TypeError(f"the culprit of a MatchFailure is an op, not {type(at).__name__}")
            at = at.operation if isinstance(at, ir.OpView) else at.owner
        object.__setattr__(self, "culprit", at)

    def __bool__(self) -> bool:
        return False


Answer = Literal[True] | MatchFailure
