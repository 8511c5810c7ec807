"""What is known about a rule or fact: proved, refuted, assumed, or unknown."""

from dataclasses import dataclass

PROVED, OVER_REALS, REFUTED, UNKNOWN, ASSUMED = "proved", "proved over the reals", "refuted", "unknown", "assumed"
STATUSES = (PROVED, OVER_REALS, REFUTED, UNKNOWN, ASSUMED)


@dataclass(frozen=True)
class Verdict:
    """The answer about one rule or fact.

    Attributes:
      name: the rule's or fact's name.
      location: where it is written, ``file:line``.
      status: one of ``STATUSES``.
      reason: why it is not proved; empty for what is proved.
      obligations: how many questions the solver answered.
      typings: number of combinations of element types that were checked.
      model: values that refute it, by name.
      trusts: what else was taken for granted: meanings that the file declares.
      types: the element types of the refuted case, operands first, the result last.
      kind: the reduction of the refuted case.
      op: its op.
    """

    name: str
    location: str
    status: str
    reason: str = ""
    obligations: int = 0
    typings: int = 0
    model: tuple[tuple[str, str], ...] = ()
    trusts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    kind: str = ""
    op: str = ""

    @property
    def sound(self) -> bool:
        """Whether it is proved."""
        return self.status in (PROVED, OVER_REALS)

    @property
    def sentence(self) -> str:
        """The verdict in words.

        Example:
          >>> Verdict("a", "f:1", ASSUMED, "a reason").sentence
          'assumed: a reason'
        """
        text = f"{self.status}: {self.reason}" if self.reason else self.status
        return f"{text} (given {', '.join(self.trusts)})" if self.trusts else text
