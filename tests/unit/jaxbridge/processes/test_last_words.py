"""A process that is aborted ends at once and by the signal; a line says that process 0 is gone where it is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hlorewrite.jaxbridge.processes import last_words
from hlorewrite.jaxbridge.processes.last_words import LastWords
from hlorewrite.jaxbridge.processes.liveness import Watch

ROOT = Path(__file__).resolve().parents[4]
SENTENCE = "process 0 (stage 0), which holds the coordination service, is gone"
PREPARED = """
import ctypes, os, signal, sys
from hlorewrite.jaxbridge.processes.last_words import LastWords
words = LastWords()
words.begin(sys.argv[1])
words.prepare("process 0 is gone")
words.prepare(sys.argv[2])
"""
FROM_A_THREAD_OF_C = """
c, python = ctypes.CDLL(None), ctypes.PyDLL(None)
python.pthread_create.argtypes = [ctypes.c_void_p] * 4
thread = ctypes.c_void_p()
python.pthread_create(ctypes.addressof(thread), None, ctypes.cast(c.abort, ctypes.c_void_p), None)
python.sleep(1000)  # in C, without giving up the interpreter's lock
"""
IN_FORKED_COMPANY = """
if os.fork() == 0:
    os.closerange(0, 3)
    signal.pause()
print(os.getpid(), flush=True)
os.abort()
"""


@pytest.fixture
def nobody() -> str:
    """An address at which nobody answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def ended(code: str, address: str) -> tuple[int, str]:
    """Exit code and stderr of a process that prepares its last words."""
    done = subprocess.run([sys.executable, "-c", PREPARED + code, address, SENTENCE], cwd=ROOT, capture_output=True,
                          text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)})
    return done.returncode, done.stderr


@pytest.mark.parametrize("code", ["os.abort()", FROM_A_THREAD_OF_C, "os.kill(os.getpid(), signal.SIGABRT)"],
                         ids=["abort", "a thread of C", "the signal"])
def test_an_abort_ends_the_process_by_the_signal_and_who_is_gone_is_said(code: str, nobody: str) -> None:
    assert ended(code, nobody) == (-signal.SIGABRT, f"hlorewrite: error: {SENTENCE}\n")


def test_nothing_is_said_of_a_process_0_that_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert ended("os.abort()", f"127.0.0.1:{server.getsockname()[1]}") == (-signal.SIGABRT, "")


@pytest.mark.parametrize("code", ["words.farewell()", "words.farewell(); words.farewell()",
                                  "words.farewell(); os._exit(0)"])
def test_nothing_is_said_after_a_farewell(code: str, nobody: str) -> None:
    assert ended(code, nobody) == (0, "")


def test_the_names_of_stages_are_in_it_as_soon_as_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(LastWords, "prepare", lambda _, sentence: said.append(sentence))
    watch = Watch("room", {0: "", 1: ""}, 1, store=None, timeout_s=60.0)  # not started: no thread can say it later
    watch.name_stages({0: "stage 0", 1: "stage 1"})
    assert said == [SENTENCE]


def test_lines_after_a_farewell_are_ignored(nobody: str) -> None:
    """Another thread may still write one."""
    process = subprocess.run([sys.executable, last_words.__file__, nobody], input=f"{SENTENCE}\n\n{SENTENCE}\n",
                             capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (0, "")


def test_a_fork_that_lives_on_does_not_keep_it_back(nobody: str) -> None:
    assert ended(IN_FORKED_COMPANY.replace("signal.pause()", "import time; time.sleep(90)"), nobody) == (
        -signal.SIGABRT, f"hlorewrite: error: {SENTENCE}\n")
