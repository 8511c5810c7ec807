"""Mutants of rewritten programs, by the validator and by the interpreter: what differs must not be proved.

``python bench/checks/validator_mutants.py [--mutants 5000] [--seconds S] [--seed 0]`` rewrites golden files and
programs drawn at random, changes one place of each result, and asks both. It goes on until so many mutants were seen
whose values differ from those of the original, prints how many the validator called proved (exit code 1 when there is
one), and how many equal ones it did not know.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from generators.mutant_trials import (  # pyright: ignore[reportMissingImports]
    differing_trials,
    mixed_sources,
)


def main() -> int:
    """Runs the trials and prints the table."""
    parser = argparse.ArgumentParser(description="Mutants by validator and interpreter.")
    parser.add_argument("--mutants", type=int, default=5000, help="how many differing mutants to see")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--seed", type=int, default=0, help="the first random program")
    args = parser.parse_args()
    started = time.perf_counter()
    counts: Counter[tuple[str, bool, bool]] = Counter()
    wrong = 0
    for trial in differing_trials(mixed_sources(args.seed * 1_000_000), args.mutants, random.Random(args.seed)):
        counts[trial.what, trial.equal, trial.proved] += 1
        if trial.proved and not trial.equal:
            wrong += 1
            print(f"WRONG: {trial.what} in {trial.name}\n{trial.original}\n{trial.mutant}\n")
        total, spent = sum(counts.values()), time.perf_counter() - started
        if total % 500 == 0:
            differ = sum(n for key, n in counts.items() if not key[1])
            print(f"{total} mutants, {differ} differ, {spent:.0f} s, {wrong} wrong", file=sys.stderr, flush=True)
        if spent > args.seconds:
            break
    print(f"{'mutation':<22} {'differ':>7} {'proved':>7} {'equal':>7} {'unknown':>8}")
    for what in sorted({key[0] for key in counts}):
        differ = counts[what, False, False] + counts[what, False, True]
        equal = counts[what, True, False] + counts[what, True, True]
        print(f"{what:<22} {differ:>7} {counts[what, False, True]:>7} {equal:>7} {counts[what, True, False]:>8}")
    differ = sum(n for key, n in counts.items() if not key[1])
    equal, unknown = sum(counts.values()) - differ, sum(n for key, n in counts.items() if key[1] and not key[2])
    print(f"{'all':<22} {differ:>7} {wrong:>7} {equal:>7} {unknown:>8}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
