"""Bounds of rounding next to the differences seen: golden files, random programs, and the programs of the benches.

``python bench/checks/rounding.py [--only TEXT] [--programs N] [--json]`` rewrites each program, executes it before
and after by the StableHLO reference interpreter, and prints for each set how many outputs are equal, bounded and
without a bound, and how many have an element above its bound. For programs whose values differ it prints quotients of
bound and difference: ``nearest`` is the least one of all elements. ``median`` and ``largest`` are over programs, of
the element with the largest difference of each output (of a program's outputs the largest quotient counts). Exit code
1 when an element differs by more than its bound, or the largest difference of an output is less than a hundredth of
its bound.

The JSON also has ``largest_apart``: the largest bound of an output over its largest difference, which may be of two
elements. Where most elements are equal, it says how different the magnitudes of the elements are.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "passes"))

from generators.rounding_trials import (  # pyright: ignore[reportMissingImports]
    RoundingTrial,
    at_random,
    golden,
    layers,
    trial,
)

from hlorewrite.ir.module import Module

FAR = 100.0
"""Programs with an output whose bound is more than this times its largest difference are named."""


def accumulation_loops() -> Iterator[RoundingTrial]:
    """The cases of ``comm_shift.py``, at the width it compares values at."""
    from comm_shift import VALUES_WIDTH, exported, shifted
    from comm_shift_cases import CASES

    for case in CASES:
        before = exported(case, VALUES_WIDTH)
        made = trial(case.name, before, shifted(before, case)[0], (0,))
        if made:
            yield made


def gpt_steps() -> Iterator[RoundingTrial]:
    """GPT steps on inputs as a training has them."""
    from rounding_programs import gpt_steps, in_training

    for name, before, after in gpt_steps():
        made = trial(name, before, after, (0,), in_training)
        if made:
            yield made


def sharded_parameters() -> Iterator[RoundingTrial]:
    """Steps with sharded parameters."""
    from rounding_programs import sharded_parameters

    return on_random_inputs(sharded_parameters())


def pipelines() -> Iterator[RoundingTrial]:
    """Steps with stage marks, unsplit and split."""
    from rounding_programs import pipelines

    return on_random_inputs(pipelines())


def on_random_inputs(pairs: Iterable[tuple[str, Module, Module]]) -> Iterator[RoundingTrial]:
    """Trials of programs by name, before and after their passes."""
    for name, before, after in pairs:
        made = trial(name, before, after, (0,))
        if made:
            yield made


def row_of(name: str, trials: list[RoundingTrial]) -> dict[str, object]:
    """What is printed of one set."""
    outputs = [output for each in trials for output in each.outputs]
    times = sorted(each.times for each in trials if each.times is not None)
    differ = [output for output in outputs if output.times is not None]
    return {
        "programs": name, "count": len(trials), "outputs": len(outputs),
        "equal": sum(not output.reason and output.widest == 0 for output in outputs),
        "bounded": sum(not output.reason and output.widest > 0 for output in outputs),
        "no_bound": sum(bool(output.reason) for output in outputs),
        "above_bound": sum(not output.held for output in outputs), "differ": len(times),
        "nearest": min((output.nearest for output in differ), default=None),
        "median": statistics.median(times) if times else None, "largest": times[-1] if times else None,
        "largest_apart": max((output.widest / output.difference for output in differ), default=None),
        "far": [[each.name, each.times] for each in trials if each.times is not None and each.times > FAR],
        "reasons": sorted({output.reason for output in outputs if output.reason}),
    }


def main() -> int:
    """Runs the sets; prints a table or JSON."""
    parser = argparse.ArgumentParser(description="Bounds of rounding next to the differences seen.")
    parser.add_argument("--only", default="", help="sets whose name contains this text")
    parser.add_argument("--programs", type=int, default=400, help="how many programs to draw at random")
    parser.add_argument("--json", action="store_true", help="one JSON object for each set")
    args = parser.parse_args()
    sets: dict[str, Callable[[], Iterator[RoundingTrial]]] = {
        "golden files": golden, "random programs": lambda: at_random(range(args.programs)),
        "random layers": lambda: layers(range(args.programs // 10)), "accumulation loops": accumulation_loops,
        "GPT steps": gpt_steps, "sharded parameters": sharded_parameters, "pipelines": pipelines}
    wrong = 0
    if not args.json:
        print(f"{'programs':20} {'count':>5} {'outputs':>7} {'equal':>6} {'bounded':>7} {'no bound':>8} {'above':>5} "
              f"{'differ':>6} {'nearest':>7} {'median':>7} {'largest':>7}")
    for name, run in sets.items():
        if args.only not in name:
            continue
        row = row_of(name, list(run()))
        wrong += bool(row["above_bound"] or row["far"])
        print(json.dumps(row) if args.json else _line(row), flush=True)
    return 1 if wrong else 0


def _line(row: dict[str, object]) -> str:
    times = [f"{row[key]:7.1f}" if row[key] is not None else f"{'-':>7}" for key in ("nearest", "median", "largest")]
    lines = [f"{row['programs']:20} {row['count']:5} {row['outputs']:7} {row['equal']:6} {row['bounded']:7} "
             f"{row['no_bound']:8} {row['above_bound']:5} {row['differ']:6} {' '.join(times)}"]
    for name, times_far in row["far"]:  # pyright: ignore[reportGeneralTypeIssues]
        lines.append(f"  {name}: {times_far:.0f} times")
    return "\n".join([*lines, *(f"  no bound: {reason}" for reason in row["reasons"])])  # pyright: ignore


if __name__ == "__main__":
    sys.exit(main())
