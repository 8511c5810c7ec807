"""Bounds of rounding next to the differences seen: golden files, random programs, and the programs of the benches.

``python bench/rounding.py [--only TEXT] [--programs N] [--json]`` rewrites each program, executes it before and after
by the StableHLO reference interpreter, and prints for each set how many outputs are equal, bounded and without a bound,
and the distribution of the bound over the largest difference seen, of programs whose values differ. Exit code 1 when
an element differs by more than its bound.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from generators.rounding_trials import (  # pyright: ignore[reportMissingImports]
    RoundingTrial,
    at_random,
    golden,
    layers,
    trial,
)

FAR = 100.0
"""Programs whose bound is more than this times the largest difference are named."""


def accumulation_loops() -> Iterator[RoundingTrial]:
    """The cases of ``comm_shift.py``, at the width it compares values at."""
    from comm_shift import VALUES_WIDTH, exported, shifted
    from comm_shift_cases import CASES

    for case in CASES:
        before = exported(case, VALUES_WIDTH)
        made = trial(case.name, before, shifted(before, case)[0], (0,))
        if made:
            yield made


def of_bench(programs: str) -> Iterator[RoundingTrial]:
    """A set of ``rounding_programs.py``."""
    import rounding_programs

    for name, before, after in getattr(rounding_programs, programs)():
        made = trial(name, before, after, (0,))
        if made:
            yield made


def row_of(name: str, trials: list[RoundingTrial]) -> dict[str, object]:
    """What is printed of one set."""
    outputs = [output for each in trials for output in each.outputs]
    times = sorted(each.times for each in trials if each.times is not None)
    return {
        "programs": name, "count": len(trials), "outputs": len(outputs),
        "equal": sum(not output.reason and output.bound == 0 for output in outputs),
        "bounded": sum(not output.reason and output.bound > 0 for output in outputs),
        "no_bound": sum(bool(output.reason) for output in outputs),
        "above_bound": sum(not output.held for output in outputs), "differ": len(times),
        "median": statistics.median(times) if times else None, "largest": times[-1] if times else None,
        "far": [[each.name, each.times] for each in trials if each.times is not None and each.times > FAR],
        "reasons": sorted({output.reason for output in outputs if output.reason}),
    }


def main() -> int:
    """Runs the sets; prints a table or JSON."""
    parser = argparse.ArgumentParser(description="Bounds of rounding next to the differences seen.")
    parser.add_argument("--only", default="", help="sets whose name holds this text")
    parser.add_argument("--programs", type=int, default=400, help="how many programs to draw at random")
    parser.add_argument("--json", action="store_true", help="one JSON object for each set")
    args = parser.parse_args()
    sets: dict[str, Callable[[], Iterator[RoundingTrial]]] = {
        "golden files": golden, "random programs": lambda: at_random(range(args.programs)),
        "random layers": lambda: layers(range(args.programs // 10)), "accumulation loops": accumulation_loops,
        "GPT steps": lambda: of_bench("gpt_steps"),
        "pipelines": lambda: of_bench("pipelines")}
    wrong = 0
    if not args.json:
        print(f"{'programs':20} {'count':>5} {'outputs':>7} {'equal':>6} {'bounded':>7} {'no bound':>8} {'above':>5} "
              f"{'differ':>6} {'median':>7} {'largest':>7}")
    for name, run in sets.items():
        if args.only not in name:
            continue
        row = row_of(name, list(run()))
        wrong += int(str(row["above_bound"]))
        print(json.dumps(row) if args.json else _line(row), flush=True)
    return 1 if wrong else 0


def _line(row: dict[str, object]) -> str:
    times = [f"{row[key]:7.1f}" if row[key] is not None else f"{'-':>7}" for key in ("median", "largest")]
    lines = [f"{row['programs']:20} {row['count']:5} {row['outputs']:7} {row['equal']:6} {row['bounded']:7} "
             f"{row['no_bound']:8} {row['above_bound']:5} {row['differ']:6} {' '.join(times)}"]
    for name, times_far in row["far"]:  # pyright: ignore[reportGeneralTypeIssues]
        lines.append(f"  {name}: {times_far:.0f} times")
    return "\n".join([*lines, *(f"  no bound: {reason}" for reason in row["reasons"])])  # pyright: ignore


if __name__ == "__main__":
    sys.exit(main())
