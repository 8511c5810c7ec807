"""An op of a rule, with symbols for what the rule leaves open."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class MatchedOp:
    """An op of the match, or one the rewrite makes.

    Attributes:
      variable: the name of its result.
      name: the op.
      operands: the names of its operands.
      attributes: a symbol for each attribute; equal symbols are equal attributes.
      kind: the reduction of its region: a kind, or a symbol for one that is not known.
    """

    variable: str
    name: str
    operands: tuple[str, ...]
    attributes: Mapping[str, Any]
    kind: str

    def attribute(self, name: str) -> Any:
        """The symbol of an attribute; a separate one if the rule does not name it."""
        return self.attributes.get(name, f"{self.variable}.{name}")
