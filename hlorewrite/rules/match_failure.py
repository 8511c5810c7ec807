"""The answers of native predicates and analyses: True or a value, or No with a sentence and the op at fault."""

from dataclasses import dataclass
from typing import Literal

from hlorewrite.ir.binding import ir


@dataclass(frozen=True)
class MatchFailure:
    """A check does not hold.

    Attributes:
      sentence: why, without a final full stop.
      culprit: the op at fault, if there is one.

    Example:
      >>> bool(MatchFailure("the value is read elsewhere"))
      False
    """

    sentence: str
    culprit: ir.Operation | None = None

    def __bool__(self) -> bool:
        return False


Answer = Literal[True] | MatchFailure
