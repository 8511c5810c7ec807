"""What the processes of a distributed program run when the rewriter of one of them fails, and how soon that is decided.

The rewriter of one process raises, is delayed by 30 s, uses up the memory, or is ended as by the kernel's memory
killer. Each program runs with each fault once: a decorated step, a step under ``patch_jit`` (four processes each), a
pipeline (two). All have to do the same, with one sentence that names the process, its phase and the reason. With
``--json`` prints the figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

sys.path.append(str(Path(__file__).resolve().parents[1] / "processes"))  # last: tests have modules of the same names

from peers import LIMIT_S, PROGRAMS, read_by, started, wait_until

from hlorewrite.util.progress import progress
from hlorewrite.util.tables import numbers_right, table

KINDS = ("none", "raises", "delayed", "memory", "dies")
_SILENT_S = 90.0


@dataclass(frozen=True)
class FaultTrial:
    """One program with one fault.

    Attributes:
      program: what ran.
      kind: what the rewriter of one process did.
      odd: that process.
      ran: what each process ran, by its number: ``rewritten``, ``original``, ``nothing`` where all were to stop.
      seconds: how long after the fault that was decided.
      values: what the first step computed, where it did.
      whys: why each ran that.
    """

    program: str
    kind: str
    odd: int
    ran: dict[int, str]
    seconds: dict[int, float]
    values: tuple[str, ...]
    whys: dict[int, str]

    @property
    def alike(self) -> bool:
        """Whether all living processes ran what they had to, with one sentence, those that did not fail within 10 s;
        where one is delayed, also after the time that the others rewrite.
        """
        living = [each for each in range(PROGRAMS[self.program]) if self.kind != "dies" or each != self.odd]
        wanted = "rewritten" if self.kind == "none" else "nothing" if self.program == "pipeline" else "original"
        others = [self.seconds.get(each, 1e9) for each in living if each != self.odd]
        quick = self.kind == "none" or max(others) < LIMIT_S + (5.0 if self.kind == "delayed" else 0.0)
        said = {self.whys.get(each, "") for each in living if each != self.odd}
        named = self.kind == "none" or (len(said) == 1 and f"process {self.odd} (" in said.pop())
        return [self.ran.get(each) for each in living] == [wanted] * len(living) and quick and named


def main() -> int:
    """Runs the trials and prints the table; 1 if processes did not all do the same in time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated: %(default)s")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="comma-separated: %(default)s")
    parser.add_argument("--odd", type=int, default=1, help="the process that fails (1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    cases = [(program, kind) for program in args.programs.split(",") for kind in args.kinds.split(",")]
    trials = []
    with progress("faults", len(cases)) as advance:
        for program, kind in cases:
            advance(f"{program} {kind}")
            trials.append(fault_trial(program, kind, args.odd))
    print(json.dumps([asdict(each) for each in trials], indent=2) if args.json else faults_table(trials))
    return int(not all(each.alike for each in trials))


def faults_table(trials: list[FaultTrial]) -> str:
    """A line for each trial: what the processes ran, the longest time until that was decided, and why.

    Example:
      >>> print(faults_table([FaultTrial("pipeline", "raises", 1, {0: "nothing", 1: "nothing"}, {0: 0.51, 1: 0.02}, (),
      ...                                {0: "process 1 (rewriting): ValueError: a bug"})]))
      program   fault   processes run  others s  it s  why
      pipeline  raises  nothing             0.5   0.0  process 1 (rewriting): ValueError: a bug
    """
    rows = [["program", "fault", "processes run", "others s", "it s", "why"]]
    for each in trials:
        others = [seconds for process, seconds in each.seconds.items() if process != each.odd]
        whys = [why for process, why in each.whys.items() if process != each.odd]
        rows.append([each.program, each.kind, " and ".join(sorted(set(each.ran.values()))) or "-",
                     f"{max(others):.1f}" if others else "-",
                     f"{each.seconds[each.odd]:.1f}" if each.odd in each.seconds else "-",
                     " | ".join(dict.fromkeys(whys))])
    return "\n".join(line.rstrip() for line in table(rows, numbers_right(rows)))


def fault_trial(program: str, kind: str, odd: int) -> FaultTrial:
    """Runs one trial; no process is left running."""
    running = started(program, kind, odd)
    wrong: list[float] = []
    ran: dict[int, tuple[float, str, str]] = {}
    values: list[str] = []

    def read(process: int, lines: IO[str]) -> None:
        for line in lines:
            words = line.split(maxsplit=3)
            if line.startswith("MISBEHAVES"):
                wrong.append(float(words[1]))
            elif line.startswith("RAN"):
                ran[process] = float(words[1]), words[2], words[3].strip() if len(words) > 3 else ""
            elif line.startswith("hlorewrite: error: ") and program == "pipeline":
                ran.setdefault(process, (time.time(), "nothing", line.partition("error: ")[2].strip()))
            elif line.startswith("VALUE"):
                values.append(words[1])

    expected = _expected(program, kind)
    with read_by(running, read):
        wait_until(lambda: all(process.poll() is not None for process in running)
                   or len(ran) + len(values) * (program != "pipeline") >= expected, wrong, _SILENT_S)
    began = wrong[0] if wrong else min((at for at, _, _ in ran.values()), default=0.0)
    return FaultTrial(program, kind, odd, {process: what for process, (_, what, _) in sorted(ran.items())},
                      {process: round(at - began, 2) for process, (at, _, _) in sorted(ran.items())},
                      tuple(sorted(set(values))), {process: why for process, (_, _, why) in sorted(ran.items()) if why})


def _expected(program: str, kind: str) -> int:
    """How many lines come from processes that live: what each ran, and the value of its first step."""
    if kind == "dies":
        return PROGRAMS[program] - 1  # nothing is computed
    return PROGRAMS[program] * (1 if program == "pipeline" else 2)


if __name__ == "__main__":
    sys.exit(main())
