"""Four real processes over gloo: the same module runs, different ones stop everywhere with the same sentence."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import IO

import pytest
from warm_process import warm_python

WORKER = Path(__file__).with_name("process_worker.py")
ROOT = WORKER.parent.parent.parent
PROCESSES = 4


def started(behaviour: str) -> list[subprocess.Popen[str]]:
    """The processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = dict(os.environ, XLA_FLAGS="", TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=str(ROOT))
    return [subprocess.Popen([warm_python(), str(WORKER), port, str(process), str(PROCESSES), behaviour],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=environment) for process in range(PROCESSES)]


def outcomes(behaviour: str) -> list[str]:
    """The last line each process prints."""
    running = started(behaviour)
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


def test_the_hint_names_what_differs():
    for line in outcomes("other"):
        assert "the original step differs; give the step the same code, shapes, shardings and options" in line


@pytest.mark.parametrize(("behaviour", "named"), [
    ("killed", "process 2 is gone: its process has ended"),
    ("stopped", "process 2 has not been heard of for "),
    ("sleeps", "process 2 is in its own Python code at process_worker.py:"),
])
def test_a_process_that_the_others_wait_for_is_named_within_ten_seconds(behaviour: str, named: str):
    seconds = seconds_until(behaviour, named)
    assert sorted(seconds) == [0, 1, 3] and max(seconds.values()) < 10.0, seconds


def seconds_until(behaviour: str, named: str) -> dict[int, float]:
    """How long after process 2 misbehaves each other process says a sentence."""
    running = started(behaviour)
    said: dict[int, float] = {}
    wrong: list[float] = []

    def read(process: int, lines: IO[str]) -> None:
        for line in lines:
            if line.startswith("MISBEHAVES"):
                wrong.append(float(line.split()[1]))
            if line.startswith("hlorewrite: ") and named in line and process != 2:
                said.setdefault(process, time.time())

    threads = [threading.Thread(target=read, args=(number, lines)) for number, process in enumerate(running)
               for lines in (process.stdout, process.stderr) if lines]
    try:
        for thread in threads:
            thread.start()
        end = time.monotonic() + 90
        # Ends: when all have spoken, or after 90 s.
        while len(said) < PROCESSES - 1 and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        for process in running:
            process.kill()
        for thread in threads:
            thread.join()
    return {process: at - wrong[0] for process, at in said.items()}


def test_a_process_whose_pass_fails_stops_every_process():
    lines = outcomes("fails")
    assert lines[2] == "STOPPED this pass fails"
    for line in (*lines[:2], lines[3]):
        assert "process 2 holds another rewritten module" in line
