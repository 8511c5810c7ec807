"""The same bytes whatever the process: ``hlorewrite opt`` on all programs of a folder, several times.

Usage: ``python bench/evidence/same_bytes.py [--programs tests/programs] [--runs 4]``. Each run is a process of its own,
with another PYTHONHASHSEED and another working directory, and gives a digest for the output of each program and for its
plan. The last line is one digest of all, to compare machines of the same versions of hlorewrite and jaxlib, which plans
hold. Exit code 1 when two runs differ.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cpu_devices import ROOT

PIPELINE = "comm"


def digests(programs: list[Path], seed: int) -> dict[str, str]:
    """Digests of output and plan by program, from a fresh process each, in a fresh directory."""
    found = {}
    environment = dict(os.environ, PYTHONHASHSEED=str(seed), PYTHONPATH=str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            result = Path(folder) / f"{program.stem}.out"
            plan = Path(folder) / f"{program.stem}.plan"
            words = [sys.executable, "-m", "hlorewrite", "opt", "-O", PIPELINE, str(program), "-o", str(result)]
            subprocess.run([*words, "--plan", str(plan)], cwd=folder, env=environment, check=True, capture_output=True)
            found[program.name] = hashlib.sha256(result.read_bytes() + plan.read_bytes()).hexdigest()
    return found


def main() -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "tests" / "programs")
    parser.add_argument("--runs", type=int, default=4)
    args = parser.parse_args()
    programs = sorted(args.programs.resolve().rglob("*.mlir"))
    runs = [digests(programs, seed) for seed in range(args.runs)]
    different = [program.name for program in programs if len({run[program.name] for run in runs}) > 1]
    print(f"{len(programs)} programs, {args.runs} runs each: {len(different)} differ" + "".join(
        f"\n  {name}" for name in different))
    print("all outputs and plans:", hashlib.sha256("".join(runs[0].values()).encode()).hexdigest()[:16])
    return 1 if different or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
