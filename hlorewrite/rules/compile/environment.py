"""The environment of a match: a list with a slot for each name, the context first."""

from dataclasses import dataclass, field
from typing import Any

CONTEXT = 0
Environment = list[Any]


class _Absent:
    """The value of an absent optional attribute; equal only to itself."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


@dataclass
class Slots:
    """Slot numbers of names (with sigils), and which names stand for ops.

    Attributes:
      numbers: slot of each name.
      ops: slot of each op name, without ``%``.
      results: for names of single results: the op's slot and the result's number.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    ops: dict[str, int] = field(default_factory=dict)
    results: dict[str, tuple[int, int]] = field(default_factory=dict)

    def slot(self, name: str) -> int:
        """The slot of a name, made on first use."""
        return self.numbers.setdefault(name, len(self.numbers) + 1)

    def empty(self, context: Any) -> Environment:
        """An environment in which only the context is set."""
        return [context] + [None] * len(self.numbers)
