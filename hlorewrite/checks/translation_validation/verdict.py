"""What the validator answers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Proved:
    """The result computes what the original does, on every device and for all inputs.

    Attributes:
      strategy: the normal form under which both were the same.
      nodes: nodes of the graph both were evaluated to.
    """

    strategy: str
    nodes: int

    def __str__(self) -> str:
        return "proved"


@dataclass(frozen=True)
class Unknown:
    """The validator cannot decide; the result may still be right.

    Attributes:
      reason: the first difference that it could not resolve, or what it does not read.
      location: where in the source, or empty.
    """

    reason: str
    location: str = ""

    def __str__(self) -> str:
        return f"unknown: {self.reason}" + (f" at {self.location}" if self.location else "")


class NotRead(Exception):
    """A program contains what the validator gives no meaning to.

    Args:
      reason: what it is.
      location: its source line, or empty.
    """

    def __init__(self, reason: str, location: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.location = location
