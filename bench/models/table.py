"""MaxText's train steps: XLA alone at its defaults and at its best published flags, and what ``auto`` compiles.

    JAX_PLATFORMS=cpu python bench/models/table.py FOLDER [--only REGEX] [--gpu NAME] [--write PAGE] [--json FILE]

FOLDER contains the modules that ``capture.py`` wrote. Each is decided in a separate process, without a GPU.
``--write`` puts the table into a page, in place of the one that it has. The command fails where a step that is kept
does not fit, or is more than 0.2 % longer than XLA alone at its defaults or its best flags.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE), str(ROOT / "bench" / "passes")]

from capture import captured_steps  # noqa: E402

_IN_A_PAGE = re.compile(r"\| step \| for \| XLA alone .*?\nMean of [^\n]*\n", re.DOTALL)
_CHILD = """
import functools, json, resource, sys
import decisions
name, target, file = sys.argv[1:]
row = decisions.decided(decisions._read(file), target, flags=True)
row["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
row["faults"] = list(decisions.faults(name, row))
print(json.dumps(row))
"""


def main() -> int:
    """Prints the table; 1 if a decision is wrong or cannot be made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="of capture.py")
    parser.add_argument("--only", default="", metavar="REGEX", help="configurations in whose name this is found")
    parser.add_argument("--gpu", default="", metavar="NAME", help="compile for as many GPUs of this name, such as b200")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="also put the table into this page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all rows to this file")
    args = parser.parse_args()
    if args.gpu and args.write:
        parser.error("--write replaces the table of all configurations for their own GPUs: leave out --gpu")
    rows, wrong = dict[str, dict[str, Any]](), list[str]()
    for name, target, file in captured_steps(args.folder, args.only, args.gpu):
        row = decided(name, target, file)
        wrong += [row] if isinstance(row, str) else row["faults"]
        if not isinstance(row, str):
            rows[name] = row
    text = table(rows)
    print(text)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")
    if args.write:
        args.write.write_text(_IN_A_PAGE.sub(lambda _: f"{text}\n", args.write.read_text(), count=1))
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


def decided(name: str, target: str, file: Path) -> dict[str, Any] | str:
    """The decision on one module, from a process of its own; a sentence where it failed."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path[:3])}
    done = subprocess.run([sys.executable, "-c", _CHILD, name, target, str(file)], env=environment,
                          capture_output=True, text=True)
    if done.returncode:
        return f"{name}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}"
    return json.loads(done.stdout)


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The rows in Markdown."""
    lines = ["| step | for | XLA alone | XLA, best flags | hlorewrite | of XLA alone | exposed | memory "
             "| CPU of XLA alone |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name, row in rows.items():
        alone, chosen = (_row(row, each) for each in ("XLA alone", row["chosen"]))
        flags = {each: seconds for each, seconds in row["flags"].items() if seconds}
        best = min([*flags.items(), ("the defaults", row["alone_s"])], key=lambda each: each[1])
        fits = "" if alone["fits"] else ", XLA alone does not fit"
        lines.append(
            f"| {name} | {row['target']} | {row['alone_s']:.2f} s | {best[1]:.2f} s ({best[0]}) | "
            f"{row['step_s']:.2f} s ({row['chosen']}) | {row['step']:.3f} | "
            f"{alone['exposed_s']:.2f} → {chosen['exposed_s']:.2f} s | {_gib(alone)} → {_gib(chosen)} GiB{fits} | "
            f"{row['cpu']:.1f} |")
    fitting = [row["step"] for row in rows.values() if _row(row, "XLA alone")["fits"]]
    if fitting:
        lines += ["", f"Mean of the {len(fitting)} that fit: {sum(fitting) / len(fitting):.3f} of XLA alone."]
    return "\n".join(lines)


def _row(row: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in row["rows"] if each["name"] == name)


def _gib(row: dict[str, Any]) -> str:
    return f"{row['memory_bytes'] / 2**30:.1f}"


if __name__ == "__main__":
    sys.exit(main())
