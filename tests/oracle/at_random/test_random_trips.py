"""Loops that devices may run a different number of times, executed by XLA alone and rewritten.

XLA moves collectives of what does not change before a loop, so such loops end where the specification says that they
never do. Rewritten they have to give the same values.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = 300 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 12
WORKER = Path(__file__).with_name("trips_worker.py")


def test_random_trips() -> None:
    """Three loops a program; a wait of one device for another would end the worker's time."""
    done = subprocess.run([sys.executable, str(WORKER), "0", str(PROGRAMS)], capture_output=True, text=True,
                          check=False, timeout=60 + 20 * PROGRAMS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{PROGRAMS} programs, 0 wrong\n"
