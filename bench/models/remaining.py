"""What communication stays exposed in MaxText's train steps after ``auto`` has chosen, collective by collective.

    JAX_PLATFORMS=cpu python bench/models/remaining.py FOLDER [--only REGEX] [--write PAGE]

FOLDER holds the modules that ``capture.py`` wrote. For each step that fits, the chosen program is scheduled and
simulated: what compute waits for, and what only slows it down because both share a GPU. ``--write`` puts the table into
a page, in place of the one that it has.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from capture import captured_steps  # noqa: E402

from hlorewrite.audit.step_audit import audit_step  # noqa: E402
from hlorewrite.cost import topology  # noqa: E402
from hlorewrite.ir.load import parse  # noqa: E402
from hlorewrite.jaxbridge.baseline.measured import scheduled  # noqa: E402
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step  # noqa: E402
from hlorewrite.jaxbridge.step.options import OPTIMIZE, StepOptions  # noqa: E402
from hlorewrite.jaxbridge.xla.compile_for import place_of  # noqa: E402
from hlorewrite.jaxbridge.xla.target import parse_target  # noqa: E402
from hlorewrite.timeline.simulate import ScheduledStep  # noqa: E402

_HEAD = ("| step | collective, line | communication | compute waits | compute is slowed down | why it is where it is |",
         "|---|---|---|---|---|---|")
_IN_A_PAGE = re.compile(re.escape(_HEAD[0]) + r"\n(?:\|[^\n]*\n)+")
_SHOWN, _LEAST_SHARE = 3, 0.001
"""Lines of a step at most, and the share of the step that a line is shown from."""


def main() -> int:
    """Prints the table; 1 if a step cannot be decided."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="of capture.py")
    parser.add_argument("--only", default="", metavar="REGEX", help="configurations in whose name this is found")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="also put the table into this page")
    parser.add_argument("--one", nargs=2, metavar=("FILE", "TARGET"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print("\n".join(remaining(Path(args.one[0]), args.one[1])))
        return 0
    lines, failed = list(_HEAD), False
    for name, target, file in captured_steps(args.folder, args.only):
        done = subprocess.run([sys.executable, __file__, str(args.folder), "--one", str(file), target],  # own memory
                              capture_output=True, text=True, env=os.environ)
        failed |= bool(done.returncode)
        lines += [line for line in done.stdout.splitlines() if line] if not done.returncode else []
        if done.returncode:
            print(f"{name}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}", file=sys.stderr)
    text = "\n".join(lines)
    print(text)
    if args.write:
        args.write.write_text(_IN_A_PAGE.sub(lambda _: f"{text}\n", args.write.read_text(), count=1))
    return int(failed)


def remaining(file: Path, target: str) -> list[str]:
    """The rows of one step: its most exposed lines, and all others together; none where it does not fit."""
    module = parse(file.read_bytes(), name=file.stem)
    place = place_of(parse_target(target), module)
    made, _ = rewrite_step(module.clone(), StepOptions.of(OPTIMIZE, {"passes": "auto"}), place)
    found = made.report.comparison
    if found is None or not next(row for row in found.rows if row.name == found.chosen).as_json(found.chosen)["fits"]:
        return []  # what does not fit gains nothing
    chosen = parse(made.bytecode, name=file.stem) if made.bytecode else module
    flags = dict(made.report.compiler_options)
    step = ScheduledStep(scheduled(chosen, place, flags)[0].hlo, topology(target))
    audit = audit_step(step, file.stem)
    rows = defaultdict[tuple[str, str, str], list[float]](lambda: [0.0, 0.0, 0.0])
    for one, reason in zip(audit.timeline.collectives, audit.reasons, strict=True):
        row = rows[one.kind, one.source, reason]
        for place_, seconds in enumerate((one.communication_s, one.waited_s, one.exposed_s - one.waited_s)):
            row[place_] += seconds
    ordered = sorted(rows.items(), key=lambda each: -(each[1][1] + each[1][2]))
    shown = [each for each in ordered[:_SHOWN] if sum(each[1][1:]) >= _LEAST_SHARE * audit.timeline.step_s]
    lines = [f"| {'' if number else file.stem} | {kind}, `{source}` | {_seconds(row)} | {reason or 'it runs once'} |"
             for number, ((kind, source, reason), row) in enumerate(shown)]
    rest = [sum(column) for column in zip(*(row for _, row in ordered[len(shown):]), strict=True)]
    if not rest:
        return lines
    name = "" if shown else file.stem
    return [*lines, f"| {name} | {len(ordered) - len(shown)} other lines | {_seconds(rest)} | |"]


def _seconds(row: list[float]) -> str:
    return " | ".join(f"{seconds * 1e3:.0f} ms" for seconds in row)


if __name__ == "__main__":
    sys.exit(main())
