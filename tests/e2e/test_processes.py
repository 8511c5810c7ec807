"""Four real processes over gloo: all run the same module; the original where they differ, with the same sentence."""

from __future__ import annotations

import threading
import time
from typing import IO

import pytest
from worker_processes import PROCESSES, outcomes, started


def test_the_same_module_everywhere_runs():
    assert [line for line, _ in outcomes("same")] == ["OK 30.0 30.0 True"] * PROCESSES


@pytest.mark.parametrize(("behaviour", "words"), [
    ("pipeline", "process 2 (comparing): its module differs from that of process 0: its pipeline is "
                 "comm-shift,canonicalize"),
    ("off", "process 2 (rewriting): HLOREWRITE=0 is set"),
    ("fails", "process 2 (rewriting): this pass fails"),
])
def test_when_one_process_differs_all_run_the_original_and_say_why(behaviour: str, words: str):
    for process, (line, err) in enumerate(outcomes(behaviour)):
        assert line == "OK 30.0 30.0 False", err
        assert f"local: runs unrewritten: {words}" in err or (behaviour == "off" and process == 2)


def test_processes_of_another_program_run_the_original():
    for line, err in outcomes("other"):
        assert line.startswith("OK") and line.endswith("False")
        assert "process 2 (comparing): its module differs from that of process 0: its original module differs; use " \
            "the same code, shapes, shardings and options on every process" in err


def test_all_stop_where_the_user_wants_errors():
    lines = [line for line, _ in outcomes("fails", "raise")]
    assert lines[2] == "STOPPED this pass fails"
    assert [lines[each] for each in (0, 1, 3)] == [f"STOPPED process {each}: process 2 (rewriting): this pass fails"
                                                   for each in (0, 1, 3)]


@pytest.mark.parametrize(("behaviour", "named"), [
    ("killed", "process 2 is gone: its process has ended"),
    ("stopped", "process 2 has not been heard of for "),
    ("sleeps", "process 2 is in its own Python code at process_worker.py:"),
])
def test_a_process_that_the_others_wait_for_is_named_within_ten_seconds(behaviour: str, named: str):
    seconds = seconds_until(behaviour, named)
    assert sorted(seconds) == [0, 1, 3] and max(seconds.values()) < 10.0, seconds


@pytest.mark.parametrize("wait", ["method", "array"])
def test_those_that_wait_for_a_dead_process_end_however_they_wait(wait: str):
    running = started(f"killed-{wait}")
    try:
        for process in running:
            process.wait(60)
    finally:
        for process in running:
            process.kill()
    for process in (running[each] for each in (0, 1, 3)):
        last = process.communicate()[1].rstrip().splitlines()[-1]
        assert process.returncode == 1, last
        assert last.startswith("hlorewrite: error: process 2 is gone: its process has ended")


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
