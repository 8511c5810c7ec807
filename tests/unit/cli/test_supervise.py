"""The process above the one that works: crashes, limits, signals, and standard streams that are closed or full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_process import warm_cli

ROOT = Path(__file__).resolve().parents[3]
TEXT = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"


def hlorewrite(*words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """A real process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([warm_cli(), "-m", "hlorewrite", *words], capture_output=True, check=False,
                          env=environment, **options)  # type: ignore[call-overload]


@pytest.mark.parametrize(("work", "code", "message"), [
    ("os.abort()", 2, "hlorewrite: error: a.mlir: while it was read: MLIR crashed (SIGABRT)"),
    ("stage('a.mlir: in a pass of cse'); os.abort()", 1, "a.mlir: in a pass of cse: MLIR crashed (SIGABRT)"),
    ("stage('a.hlo: while it was compiled', of='XLA'); os.abort()", 1, "a.hlo: while it was compiled: XLA crashed"),
    ("stage('a.hlo: while it was read', of='XLA'); os.abort()", 2,
     "XLA crashed (SIGABRT); pass HLO as XLA prints it"),
    ("return guarded(['opt', '--help'])", 0, ""),
    ("print('done')\n    return 3", 3, ""),
    ("os.kill(os.getpid(), 9)", 1, "a.mlir: while it was read: killed by SIGKILL; the system does that when memory"),
    ("os._exit(0)", 1, "a.mlir: while it was read: the process ended without a result (exit code 0)"),
    ("os._exit(7)", 7, "the process ended without a result (exit code 7)"),
    ("set_limits(0.2, None)\n    time.sleep(60)", 1, "while it was read: reached the time limit of 200 ms; raise it"),
    ("signal.signal(15, signal.SIG_IGN)\n    set_limits(0.2, None)\n    time.sleep(60)", 1,
     "reached the time limit of 200 ms"),
    ("set_limits(None, 100 << 20)\n    kept = b'x' * (300 << 20)\n    time.sleep(60)", 1,
     "reached the memory limit of 100.00 MiB"),
    ("set_limits(None, 200 << 20)\n    subprocess.run([sys.executable, '-c', "
     "'import time; kept = b\"x\" * (300 << 20); time.sleep(60)'])", 1, "reached the memory limit of 200.00 MiB"),
])
def test_a_process_above_the_one_that_works(work: str, code: int, message: str) -> None:
    """It reports crashes and forwards other exit codes."""
    script = ("import os, signal, subprocess, sys, time\nfrom hlorewrite.cli.main import guarded\n"
              "from hlorewrite.cli.process import set_limits, stage, supervised\n"
              f"def work():\n    stage('a.mlir: while it was read')\n    {work}\n"
              "sys.exit(supervised(work))")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == code and message in done.stderr
    assert work.startswith("print") is (done.stdout == "done\n") and done.stderr.count("\n") == bool(message)


WAITS = """import os, sys, time
from hlorewrite.cli import main, process
def work(words):
    try:
        print(os.getpid(), flush=True)
        for _ in range(6000):
            time.sleep(0.01)
    finally:
        print('cleaned', flush=True)
    return 0
main.main = work
process.GRACE_S = 0.5
main.entry()
"""


def waiting(word: str = "opt") -> tuple[subprocess.Popen[str], int]:
    """A command that works for a minute, and the process that does the work."""
    process = subprocess.Popen([sys.executable, "-c", WAITS, word], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def gone(process: int) -> bool:
    """Whether a process ends within five seconds."""
    for _ in range(100):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(("number", "code", "message"), [
    (signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 129, "terminated")])
@pytest.mark.parametrize("command", ["opt", "verify", "estimate"])
def test_signals_reach_the_work(command: str, number: int, code: int, message: str) -> None:
    """It cleans up, and one line says what happened."""
    process, child = waiting(command)
    process.send_signal(number)
    out, said = process.communicate(timeout=20)
    assert (process.returncode, said, out) == (code, f"hlorewrite: error: {message}\n", "cleaned\n") and gone(child)


def test_a_signal_that_does_not_interrupt_the_wait_is_seen() -> None:
    """One that comes just before the wait begins; here another thread takes it, and the wait goes on."""
    script = ("import signal, sys, threading, time\nfrom hlorewrite.cli.process import supervised\n"
              "def send():\n    time.sleep(0.3)\n    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)\n"
              "def work():\n    for _ in range(6000):\n        time.sleep(0.01)\n"
              "threading.Thread(target=send, daemon=True).start()\nsys.exit(supervised(work))")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT,
                          timeout=20)
    assert done.returncode == 128 + signal.SIGTERM


def test_work_that_does_not_answer_is_killed() -> None:
    """C++ code does not see signals; a second of them, or the grace time, ends it."""
    script = WAITS.replace("    try:", "    import signal; signal.signal(2, signal.SIG_IGN)\n    try:")
    process = subprocess.Popen([sys.executable, "-c", script, "opt"], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=20)
    assert (process.returncode, said, out) == (130, "hlorewrite: error: interrupted\n", "") and gone(child)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread looks")
def test_no_work_survives_its_parent() -> None:
    """Killed, a parent takes the child along."""
    process, child = waiting()
    process.kill()
    process.communicate(timeout=20)
    assert gone(child)


@pytest.mark.parametrize("words", [["opt", "-"], ["report", "-"], ["calibrate", "-", "--topology=h200:1x8"]])
def test_limits_are_flags_of_subcommands(words: list[str]) -> None:
    """With the time counted from the start of the command, which here waits for input that never comes."""
    reading, writing = os.pipe()
    try:
        done = hlorewrite(*words, "--time-limit=0.5s", stdin=reading)
    finally:
        os.close(reading)
        os.close(writing)
    assert done.returncode == 1 and not done.stdout
    assert b"reached the time limit of 500 ms; raise it, or give it less to do\n" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_closed_and_full_standard_streams(tmp_path: Path) -> None:
    """One line, and an output that is a file is written."""
    (tmp_path / "a.mlir").write_text(TEXT)
    run = f"cd {tmp_path}; {sys.executable} -m hlorewrite"
    for words, code, message in (
            ("opt a.mlir >&-", 1, "cannot write standard output (Bad file descriptor)"),
            ("opt a.mlir >/dev/full", 1, "cannot write standard output (No space left on device)"),
            ("report a.mlir >/dev/full", 1, "cannot write standard output (No space left on device)"),
            ("--version >/dev/full", 1, "cannot write standard output (No space left on device)"),
            ("opt a.mlir -o out.mlir >&-", 0, ""), ("opt a.mlir -o out.mlir >&- 2>&- <&-", 0, ""),
            ("opt a.mlir -o out.mlir --diff >/dev/full", 1, "cannot write standard output"),
            ("opt a.mlir -o /dev/full", 1, "/dev/full: cannot be written (No space left on device)")):
        done = subprocess.run(["bash", "-c", f"{run} {words}"], capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == code and message in done.stderr, words
        assert done.stderr.count("\n") == bool(message), words
    assert "func.func" in (tmp_path / "out.mlir").read_text()


def test_file_names_that_are_no_text(tmp_path: Path) -> None:
    """Are read, written and shown."""
    name = os.fsdecode(os.fsencode(tmp_path) + b"/na\xffme.mlir")
    Path(name).write_text(TEXT)
    assert hlorewrite("opt", name, "-o", name + ".out").returncode == 0 and Path(name + ".out").exists()
    for words in (["report", name], ["lint", name], ["opt", name, "--remarks=all", "--pass=comm-shift"]):
        done = hlorewrite(*words)
        assert done.returncode == 0 and b"Traceback" not in done.stderr
    done = hlorewrite("opt", name + ".missing")
    assert done.returncode == 2 and b"na\\udcffme.mlir.missing: no such file" in done.stderr
