"""How soon a process that is killed, stopped or sleeping is named by every other process of a distributed program.

Each trial starts real processes of one CPU device each, lets one of them misbehave after five steps, and takes the time
until every other process has named it on stderr. Each process is the odd one in turn, process 0, which holds the
coordination service, included. With ``--json`` prints the figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from hlorewrite.util.progress import progress
from hlorewrite.util.tables import numbers_right, table

HERE = Path(__file__).resolve().parent
PROGRAMS = {"step": 4, "jit": 4, "pipeline": 2}
"""Programs, and how many processes each has: a decorated step, a step under ``patch_jit``, a pipeline."""
KINDS = ("killed", "stopped", "sleeping")
LIMIT_S = 10.0
_START_S, _SILENT_S = 120.0, 30.0


@dataclass(frozen=True)
class PeerTrial:
    """One trial.

    Attributes:
      program: what ran.
      kind: what the odd process did.
      odd: which process that was.
      seconds: how long after that each other process named it, by its number; who never did is missing.
      sentence: how the last one named it.
    """

    program: str
    kind: str
    odd: int
    seconds: dict[int, float]
    sentence: str = ""

    @property
    def named(self) -> bool:
        """Whether every other process named it in time."""
        return len(self.seconds) == PROGRAMS[self.program] - 1 and max(self.seconds.values()) < LIMIT_S


def main() -> int:
    """Runs the trials and prints the table; 1 if a process was not named in time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=10, help="of each program and kind (10)")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated: %(default)s")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="comma-separated: %(default)s")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    for given, known in ((args.kinds, KINDS), (args.programs, PROGRAMS)):
        if unknown := set(given.split(",")) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}; write one of {', '.join(known)}")
    cases = [(program, kind, number) for program in args.programs.split(",") for kind in args.kinds.split(",")
             for number in range(args.trials)]
    trials = []
    with progress("trials", len(cases)) as advance:
        for program, kind, number in cases:
            advance(f"{program} {kind} {number}")
            trials.append(peer_trial(program, kind, number % PROGRAMS[program]))
    print(json.dumps([asdict(each) for each in trials], indent=2) if args.json else trials_table(trials))
    return int(not all(each.named for each in trials))


def trials_table(trials: list[PeerTrial]) -> str:
    """A line for each program and kind: trials, how many named everywhere in time, median and longest time.

    Example:
      >>> print(trials_table([PeerTrial("pipeline", "killed", 1, {0: 2.04}, "process 1 is gone")]))
      program   peer    trials  named in 10 s  median s  longest s  for example
      pipeline  killed       1              1       2.0        2.0  process 1 is gone
    """
    rows = [["program", "peer", "trials", "named in 10 s", "median s", "longest s", "for example"]]
    for key in dict.fromkeys((each.program, each.kind) for each in trials):
        mine = [each for each in trials if (each.program, each.kind) == key]
        seconds = sorted(one for each in mine for one in each.seconds.values()) or [float("nan")]
        rows.append([*key, str(len(mine)), str(sum(each.named for each in mine)),
                     f"{seconds[len(seconds) // 2]:.1f}", f"{seconds[-1]:.1f}", mine[-1].sentence])
    return "\n".join(line.rstrip() for line in table(rows, numbers_right(rows)))


def peer_trial(program: str, kind: str, odd: int) -> PeerTrial:
    """Runs one trial; no process is left running."""
    running = started(program, kind, odd)
    said: dict[int, tuple[float, str]] = {}
    wrong: list[float] = []
    names = re.compile(rf"^hlorewrite: (note|error): .*process {odd}\b")

    def read(process: int, lines: IO[str]) -> None:
        for line in lines:
            if line.startswith("MISBEHAVES"):
                wrong.append(float(line.split()[1]))
            elif wrong and process != odd and names.search(line):
                said.setdefault(process, (time.time(), line.strip()))

    with read_by(running, read):
        wait_until(lambda: len(said) >= len(running) - 1, wrong, _SILENT_S)
    began = wrong[0] if wrong else float("nan")
    return PeerTrial(program, kind, odd, {process: round(at - began, 2) for process, (at, _) in sorted(said.items())},
                     max(said.values())[1] if said else "")


@contextmanager
def read_by(running: Sequence[subprocess.Popen[str]], read: Callable[[int, IO[str]], None]) -> Iterator[None]:
    """Reads what processes print, each stream in a thread; at the end the processes are killed."""
    threads = [threading.Thread(target=read, args=(number, lines)) for number, process in enumerate(running)
               for lines in (process.stdout, process.stderr) if lines]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        for process in running:
            process.kill()
        for thread in threads:
            thread.join()
        for process in running:
            process.wait()


def wait_until(done: Callable[[], bool], wrong: Sequence[float], silent_s: float) -> None:
    """Waits until all have spoken: at most so long after the time, if there is one, at which a process misbehaved."""
    end = time.monotonic() + _START_S
    # Ends: when all have spoken, or in time.
    while not done() and time.monotonic() < end:
        if wrong:
            end = min(end, time.monotonic() + wrong[0] + silent_s - time.time())
        time.sleep(0.05)


def started(program: str, kind: str, odd: int) -> list[subprocess.Popen[str]]:
    """The processes of a program."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    processes = PROGRAMS[program]
    environment = dict(os.environ, XLA_FLAGS="", TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=str(HERE.parents[1]))
    return [subprocess.Popen([sys.executable, str(HERE / "peers_worker.py"), port, str(process), str(processes),
                              program, kind, str(odd)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=environment) for process in range(processes)]


if __name__ == "__main__":
    sys.exit(main())
