"""The machine and process of a peer, so that the end of one on this machine is seen at once."""

from __future__ import annotations

import os
from pathlib import Path


def identity() -> str:
    """Machine, process namespace, number and start time of this process; empty where they cannot be read.

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
