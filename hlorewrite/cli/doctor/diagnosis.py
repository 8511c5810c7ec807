"""One line of what ``hlorewrite doctor`` finds."""

from dataclasses import asdict, dataclass
from typing import Literal

State = Literal["ok", "note", "missing", "wrong"]
"""``missing``: an optional part is not there; ``wrong``: something that is needed does not work."""


@dataclass(frozen=True)
class Diagnosis:
    """What ``hlorewrite doctor`` found about one thing.

    Attributes:
      topic: ``python``, ``packages``, ``extras``, ``settings`` or ``self-test``.
      name: the name of the thing.
      state: whether it is as it should be.
      text: its version or value.
      fix: what to do about it; empty if nothing has to be done.
    """

    topic: str
    name: str
    state: State
    text: str
    fix: str = ""

    def as_json(self) -> dict[str, str]:
        """The finding as JSON data."""
        return asdict(self)
