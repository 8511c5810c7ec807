"""Four real processes over gloo: the same module runs, different ones stop everywhere with the same sentence."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
from warm_process import warm_python

WORKER = Path(__file__).with_name("process_worker.py")
ROOT = WORKER.parent.parent.parent
PROCESSES = 4


def outcomes(behaviour: str) -> list[str]:
    """The last line each process prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = dict(os.environ, XLA_FLAGS="", TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=str(ROOT))
    running = [subprocess.Popen([warm_python(), str(WORKER), port, str(process), str(PROCESSES), behaviour],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment) for process in range(PROCESSES)]
    try:
        ended = [process.communicate(timeout=150) for process in reversed(running)][::-1]  # process 0 leaves last
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
    return [next((line for line in out.splitlines() if line.startswith(("OK", "STOPPED"))), err[-2000:])
            for out, err in ended]


def test_the_same_module_everywhere_runs():
    assert outcomes("same") == ["OK 30.0 30.0 True"] * PROCESSES


@pytest.mark.parametrize(("behaviour", "words"), [
    ("pipeline", "process 2 holds another rewritten module than process 0: its pipeline is comm-shift,canonicalize"),
    ("off", "process 2 holds another rewritten module than process 0: it runs the original (HLOREWRITE=0 is set)"),
])
def test_a_process_with_another_module_stops_every_process(behaviour: str, words: str):
    for line in outcomes(behaviour):
        assert line.startswith("STOPPED")
        assert words in line


def test_a_process_whose_pass_fails_stops_every_process():
    lines = outcomes("fails")
    assert lines[2] == "STOPPED this pass fails"
    for line in (*lines[:2], lines[3]):
        assert "process 2 holds another rewritten module" in line
