"""What a process writes into the key-value store once a second: that it lives, and what it does."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from hlorewrite.jaxbridge.processes.phase import OWN, Phase


@dataclass(frozen=True)
class Heartbeat:
    """One heartbeat.

    Attributes:
      count: how many came before it.
      who: the process, as ``identity`` gives it; empty where it is not readable.
      phase: what its main thread did.
    """

    count: int
    who: str
    phase: Phase

    def to_text(self) -> str:
        """The heartbeat as one line of JSON."""
        return json.dumps({"count": self.count, "who": self.who, "phase": asdict(self.phase)})

    @classmethod
    def from_text(cls, text: str) -> Heartbeat:
        """Reads what ``to_text`` wrote; the text of another version gives a heartbeat that says little.

        Example:
          >>> Heartbeat.from_text(Heartbeat(3, "me", Phase("compiling")).to_text()).phase.kind
          'compiling'
          >>> Heartbeat.from_text("?").phase.kind
          'in its own Python code'
        """
        try:
            data = json.loads(text)
            return cls(int(data["count"]), str(data["who"]), Phase(**data["phase"]))
        except (ValueError, TypeError, KeyError):
            return cls(0, "", Phase(OWN))
