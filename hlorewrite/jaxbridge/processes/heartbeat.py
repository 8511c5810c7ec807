"""The heartbeat that a process writes into the key-value store once a second: that it lives, and what it does."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from hlorewrite.jaxbridge.processes.activity import OWN, Phase
from hlorewrite.util.read import read_json


@dataclass(frozen=True)
class Heartbeat:
    """One heartbeat.

    Attributes:
      count: how many came before it.
      who: the process, as ``identity`` gives it; empty if it is not readable.
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
            data = read_json(text)
            return cls(int(data["count"]), str(data["who"]), Phase(**data["phase"]))
        except (ValueError, TypeError, KeyError):
            return cls(0, "", Phase(OWN))


def identity() -> str:
    """Machine, process namespace, number and start time of this process; empty if they cannot be read.

    Example:
      >>> is_gone(identity())
      False
    """
    try:
        return f"{_machine()}/{os.getpid()}/{_start(os.getpid())}"
    except (OSError, ValueError, IndexError):
        return ""


def is_gone(who: str) -> bool:
    """Whether a process is known to have ended; False for processes of other machines.

    Args:
      who: what ``identity`` gave there.
    """
    try:
        machine, process, start = who.rsplit("/", 2)
        return machine == _machine() and _start(int(process)) != start
    except FileNotFoundError:
        return True
    except (OSError, ValueError, IndexError):
        return False


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.readlink('/proc/self/ns/pid')}"


def _start(process: int) -> str:
    """When a process started, in ticks; ``ended`` for one that waits for its parent to notice."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return "ended" if fields[0] in "ZX" else fields[19]
