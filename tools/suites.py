"""Runs suites of other projects through hlorewrite: what is read, refused, failed and wrong, by reason.

    python tools/suites.py ~/stablehlo ~/shardy ~/xla --jobs 2 --json out.json

Each module goes through ``opt`` with each named pipeline, ``report`` and, HLO alone, ``audit``; where a test of
StableHLO's interpreter states values, the reference execution must compute them. The suites' files stay where they are:
check out stablehlo, shardy, Enzyme-JAX, iree, tt-mlir or xla anywhere. Exit code 1 when something failed or is wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from foreign.inputs import SuiteModule, modules_of  # noqa: E402
from foreign.steps import ModuleOutcome, run_module, warm  # noqa: E402

_NAMES = re.compile(r"\"[^\"]*\"|@[\w.\-]+|%[\w.\-#]+|\d+|'[^']*'|MODULE[\w.:]*")
_EXAMPLES = 3
_VERDICTS = ("ok", "refused", "failed", "wrong")


def main() -> int:
    """Runs the suites of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a checkout of a suite")
    parser.add_argument("--jobs", type=int, default=2, help="modules at a time")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth module")
    parser.add_argument("--only", default="", metavar="REGEX", help="only modules whose name matches")
    parser.add_argument("--steps", default="", metavar="REGEX", help="only steps whose name matches")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all outcomes")
    args = parser.parse_args()
    warm()
    kept: dict[str, dict[str, object]] = {}
    bad = 0
    for folder in args.folders:
        modules = [each for each in modules_of(folder.resolve()) if re.search(args.only, each.name)][::args.every]
        outcomes = _run_all(modules, args.jobs, args.steps)
        kept[folder.name] = {"commit": _commit(folder), "modules": [asdict(outcome) for outcome in outcomes]}
        bad += _show(folder, modules, outcomes)
    if args.json:
        args.json.write_text(json.dumps(kept, indent=1))
    return 1 if bad else 0


def _run_all(modules: list[SuiteModule], jobs: int, steps: str) -> list[ModuleOutcome]:
    with ThreadPoolExecutor(jobs) as pool:  # each thread waits for a child of its own
        return list(pool.map(lambda module: run_module(module, steps), modules))


def _commit(folder: Path) -> str:
    """The commit of a checkout: of its repository, or as a file COMMIT states it; empty if neither is there."""
    stated = folder / "COMMIT"
    if stated.is_file():
        return stated.read_text().strip()
    asked = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() if (folder / ".git").exists() else ""


def _show(folder: Path, modules: list[SuiteModule], outcomes: list[ModuleOutcome]) -> int:
    """Prints the counts of a suite; returns how many steps failed or are wrong."""
    stated = f" at {_commit(folder)[:12]}" if _commit(folder) else ""
    files = {each.name.partition(":")[0] for each in modules}
    read = sum(outcome.read for outcome in outcomes)
    texts = sum(each.form == "hlo" for each in modules)
    print(f"\n{folder.name}{stated}: {len(files)} files, {len(modules)} modules, of them {texts} HLO; {read} read, "
          f"{len(modules) - read} refused")
    steps = Counter((step, verdict) for outcome in outcomes for step, (verdict, _) in outcome.steps.items())
    for step in dict.fromkeys(step for step, _ in steps):
        print(f"  {step:12}", *(f"{verdict} {steps[step, verdict]:6}" for verdict in _VERDICTS))
    for verdict in ("failed", "wrong", "refused"):
        reasons: dict[tuple[str, str], list[str]] = {}
        for outcome in outcomes:
            for step, (said, sentence) in outcome.steps.items():
                if said == verdict and (verdict != "refused" or step != "read"):
                    examples = reasons.setdefault((step, _NAMES.sub("_", sentence)[:150]), [])
                    examples.append(f"{outcome.name}  {sentence[:200]}")
        for (step, reason), names in sorted(reasons.items(), key=lambda each: -len(each[1]))[:60]:
            print(f"  {verdict} {step} {len(names)}: {reason}")
            if verdict != "refused":
                print(*(f"      {name}" for name in names[:_EXAMPLES]), sep="\n")
    return sum(count for (_, verdict), count in steps.items() if verdict in ("failed", "wrong"))


if __name__ == "__main__":
    sys.exit(main())
