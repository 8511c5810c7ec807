"""What the others do when a process is killed, stopped or slow at a random moment: compile, first call, steps or save.

Each trial starts two to four real processes of two CPU devices each, which wait for their steps in one of many ways
(``moments_worker.WAITS``). At a random moment one of them gets SIGKILL; SIGSTOP; or SIGSTOP, and SIGCONT when the
others have named it or ten seconds have passed (``slow``). Every other process must name it on stderr within ten
seconds. Those of a killed or stopped process must end with exit code 1 (where process 0 dies, XLA may abort them:
SIGABRT): soon, after ``TIMEOUT_S``, or by an error of gloo, which waits 30 s for a process that never
came; those of a slow one must go on. With ``--json`` prints the figures as JSON; exit code 1 if one trial is not as
it must be.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from moments_worker import WAITS
from peers import LIMIT_S, read_by

from hlorewrite.util.progress import progress
from hlorewrite.util.tables import numbers_right, table

HERE = Path(__file__).resolve().parent
KINDS = ("killed", "stopped", "slow")
PHASES = {"compile": 1.5, "first call": 0.2, "steps": 2.0, "save": 1.0}
"""Phases, and up to how many seconds after the moment is at which all processes have begun one."""
TIMEOUT_S = 20.0
_START_S, _END_S = 180.0, 2 * TIMEOUT_S + 45.0


@dataclass(frozen=True)
class Moment:
    """What happens in a trial: all of it follows from its number."""

    program: str
    processes: int
    odd: int
    kind: str
    phase: str
    after_s: float
    wait: str


@dataclass
class MomentTrial:
    """What was seen of a trial.

    Attributes:
      number: its number.
      moment: what happened.
      named: after how many seconds each other process named the odd one; who never did is missing.
      ended: the exit code of each other process that ended, negative for a signal.
      wrong: what is not as it must be; empty if all is well.
      said: the last line on stderr of a process that is not as it must be.
    """

    number: int
    moment: Moment
    named: dict[int, float] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    said: str = ""


def moment_of(number: int) -> Moment:
    """The moment of a trial; kinds, phases and ways to wait come equally often.

    Example:
      >>> moment_of(7) == moment_of(7), moment_of(0).kind, moment_of(1).kind
      (True, 'killed', 'stopped')
    """
    random_ = random.Random(number)
    kind, phase = KINDS[number % 3], list(PHASES)[number // 3 % 4]
    processes = random_.choice((2, 3, 4))
    return Moment(random_.choice(("step", "jit")), processes, random_.randrange(processes), kind, phase,
                  round(random_.uniform(0.0, PHASES[phase]), 3), list(WAITS)[number % len(WAITS)])


class _Watched:
    """What the processes of a trial have printed."""

    def __init__(self, moment: Moment) -> None:
        self.moment = moment
        self.begun: dict[int, threading.Event] = {each: threading.Event() for each in range(moment.processes)}
        self.struck_s = float("inf")
        self.named: dict[int, float] = {}
        self.steps: dict[int, int] = {}
        self.errors: dict[int, list[str]] = {}
        self._names = re.compile(rf"\bprocess {moment.odd}\b")

    def read(self, process: int, lines: IO[str]) -> None:
        """Reads one stream of a process."""
        for line in lines:
            if line.startswith("PHASE") and self.moment.phase in line:
                self.begun[process].set()
            elif line.startswith("ALIVE "):
                if line.endswith("\n"):  # a killed process may leave half of one
                    self.steps[process] = int(line.split()[1])
            elif not line.startswith("PHASE"):
                self.errors.setdefault(process, []).append(line.strip())
                if process != self.moment.odd and "hlorewrite" in line and self._names.search(line):
                    self.named.setdefault(process, time.time())


def moment_trial(number: int) -> MomentTrial:
    """Runs one trial; no process is left running."""
    moment = moment_of(number)
    trial, seen = MomentTrial(number, moment), _Watched(moment)
    with tempfile.TemporaryDirectory() as folder:
        running = _started(moment, folder)
        others = [process for process in range(moment.processes) if process != moment.odd]
        with read_by(running, seen.read):
            end = time.monotonic() + _START_S
            if not all(begun.wait(max(end - time.monotonic(), 0.0)) for begun in seen.begun.values()):
                trial.wrong.append(f"{moment.phase} never began")
            else:
                time.sleep(moment.after_s)
                _strike(moment, running, seen, others, trial)
    for process, at in seen.named.items():
        trial.named[process] = round(max(at - seen.struck_s, 0.0), 2)
    late = [process for process in range(moment.processes)
            if process != moment.odd and trial.named.get(process, LIMIT_S) >= LIMIT_S]
    if late:
        trial.wrong.append(f"not named in time by {late}")
    if trial.wrong:
        trial.said = next((lines[-1] for process, lines in seen.errors.items() if process != moment.odd and lines), "")
    return trial


def _strike(moment: Moment, running: list[subprocess.Popen[str]], seen: _Watched, others: list[int],
            trial: MomentTrial) -> None:
    """Lets the odd process misbehave, and waits for what the others do."""
    seen.struck_s = time.time()
    running[moment.odd].send_signal(signal.SIGKILL if moment.kind == "killed" else signal.SIGSTOP)
    if moment.kind == "slow":
        _until(lambda: len(seen.named) == len(others), LIMIT_S)
        before = dict(seen.steps)
        running[moment.odd].send_signal(signal.SIGCONT)
        if not _until(lambda: all(seen.steps.get(each, 0) > before.get(each, 0) + 3 for each in others), 60.0):
            trial.wrong.append("did not go on after a slow process")
    else:
        _until(lambda: all(running[each].poll() is not None for each in others), _END_S)
    for each in others:
        code = running[each].poll()
        if code is not None:
            trial.ended[each] = code
    if moment.kind == "slow" and trial.ended:
        trial.wrong.append("ended for a slow process")
    allowed = {1, -signal.SIGABRT} if moment.odd == 0 else {1}
    if moment.kind != "slow" and not all(trial.ended.get(each) in allowed for each in others):
        trial.wrong.append("did not end as documented")


def _until(done: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    # Ends: at the deadline.
    while time.monotonic() < end:
        if done():
            return True
        time.sleep(0.1)
    return done()


def _started(moment: Moment, folder: str) -> list[subprocess.Popen[str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=str(HERE.parents[1]))
    return [subprocess.Popen([sys.executable, str(HERE / "moments_worker.py"), port, str(process),
                              str(moment.processes), moment.program, moment.wait, str(TIMEOUT_S), folder],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
            for process in range(moment.processes)]


def trials_table(trials: list[MomentTrial]) -> str:
    """A line for each kind and phase: trials, how many were as they must be, and the longest time until a name."""
    rows = [["peer", "phase", "trials", "as documented", "longest s"]]
    for kind in KINDS:
        for phase in PHASES:
            mine = [each for each in trials if (each.moment.kind, each.moment.phase) == (kind, phase)]
            seconds = [one for each in mine for one in each.named.values()]
            if mine:
                rows.append([kind, phase, str(len(mine)), str(sum(not each.wrong for each in mine)),
                             f"{max(seconds, default=float('nan')):.1f}"])
    wrong = [f"{each.number}: {each.moment}: {'; '.join(each.wrong)}: {each.said}" for each in trials if each.wrong]
    return "\n".join([*(line.rstrip() for line in table(rows, numbers_right(rows))), *wrong])


def main() -> int:
    """Runs the trials and prints the table; 1 if one is not as it must be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=90, metavar="N", help="how many (90)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first (0)")
    parser.add_argument("--numbers", type=int, nargs="+", metavar="N", help="these trials, in place of all")
    parser.add_argument("--json", action="store_true", help="print JSON, a trial a line")
    args = parser.parse_args()
    trials, numbers = [], args.numbers or range(args.first, args.first + args.trials)
    with progress("trials", len(numbers)) as advance:
        for number in numbers:
            advance(str(moment_of(number)))
            trials.append(moment_trial(number))
            if args.json:
                print(json.dumps(asdict(trials[-1])), flush=True)
    if not args.json:
        print(trials_table(trials))
    return int(any(each.wrong for each in trials))


if __name__ == "__main__":
    sys.exit(main())
