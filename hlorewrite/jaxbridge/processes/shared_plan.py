"""The plan file of a step that several processes run: the first one reads it and broadcasts it.

So a file that is missing, old or different on some host does not matter, and one policy holds for all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields

from hlorewrite.errors import PlanMismatch
from hlorewrite.jaxbridge.processes.agreement import Agreement
from hlorewrite.util.read import read_json

_PART = 1 << 20
"""Characters of one value of the store."""


@dataclass(frozen=True)
class PlanRuling:
    """What happens with the plan of a step.

    Attributes:
      name: the plan's file; empty if none is kept.
      text: the plan to replay; empty if none is.
      refused: why there is none to replay, and what happens now.
      hint: what you can do about it.
      ends: nothing is rewritten because of it.
      stops: the program stops because of it.
    """

    name: str = ""
    text: str = ""
    refused: str = ""
    hint: str = ""
    ends: bool = False
    stops: bool = False

    def error(self) -> PlanMismatch:
        """The refusal as an error."""
        return PlanMismatch(self.refused, location=self.name, hint=self.hint or None, stops=self.stops)

    @classmethod
    def from_text(cls, text: str) -> PlanRuling:
        """Reads what the first process wrote as JSON.

        Raises:
          ValueError: it is another document, such as that of another version.
        """
        data = read_json(text)
        if not isinstance(data, dict) or set(data) != {field.name for field in fields(cls)}:
            raise ValueError("the plan of another version of hlorewrite")
        return cls(**data)


def ruling_of_all(agreement: Agreement | None, mine: Callable[[], PlanRuling]) -> PlanRuling:
    """The message of the deciding process about the plan.

    Args:
      agreement: the agreement of the processes; None if this one decides alone.
      mine: reads the plan's file; called on the process that decides alone.

    Raises:
      PlanMismatch: the process that decides does not say it.
    """
    if agreement is None:
        return mine()
    if agreement.decides:
        made = mine()
        text = json.dumps(asdict(made), sort_keys=True)
        parts = [text[at:at + _PART] for at in range(0, len(text), _PART)]
        for position, part in enumerate([str(len(parts)), *parts]):
            agreement.first_says(f"plan/{position}", part)
        return made
    count = int(_said(agreement, 0))
    return PlanRuling.from_text("".join(_said(agreement, position + 1) for position in range(count)))


def stopped_by_plan(agreement: Agreement) -> PlanMismatch | None:
    """Why the program stops, if the first process said so about the plan; for a process that arrived afterwards."""
    count = agreement.first_said("plan/0")
    parts = [agreement.first_said(f"plan/{position + 1}") for position in range(int(count or 0))]
    if not parts or None in parts:
        return None
    ruling = PlanRuling.from_text("".join(part or "" for part in parts))
    return ruling.error() if ruling.stops else None


def _said(agreement: Agreement, position: int) -> str:
    said, why = agreement.first_says(f"plan/{position}", "")
    if why:  # another process that read the same may have been faster
        raise stopped_by_plan(agreement) or PlanMismatch(why, stops=False)
    return said
