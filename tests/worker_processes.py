"""Starts the processes of a distributed step: ``e2e/process_worker.py`` four times."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

from warm_process import warm_python

ROOT = Path(__file__).resolve().parent.parent
WORKER = ROOT / "tests/e2e/process_worker.py"
PROCESSES = 4


def started(*behaviour: str) -> list[subprocess.Popen[str]]:
    """The processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = dict(os.environ, XLA_FLAGS="", TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=str(ROOT))
    return [subprocess.Popen([warm_python(), str(WORKER), port, str(process), str(PROCESSES), *behaviour],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=environment) for process in range(PROCESSES)]


def outcomes(*behaviour: str) -> list[tuple[str, str]]:
    """The last line each process prints, and what it writes on stderr."""
    running = started(*behaviour)
    try:
        ended = [process.communicate(timeout=150) for process in reversed(running)][::-1]  # process 0 leaves last
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
    return [(next((line for line in out.splitlines() if line.startswith(("OK", "STOPPED"))), ""), err)
            for out, err in ended]
