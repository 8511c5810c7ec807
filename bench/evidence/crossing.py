"""Checkpoints written with hlorewrite and resumed without, and the reverse.

Usage: ``python bench/evidence/crossing.py [--steps 40] [--layers 2]``. Each training is stopped at half of its steps,
written to a file, read and continued. Exit code 1 if the final parameters of the four differ by more than the
tolerance.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from cpu_devices import use_cpu_devices

use_cpu_devices(8)

import jax  # noqa: E402
import numpy as np  # noqa: E402
from checkpoint import read_checkpoint, write_checkpoint  # noqa: E402
from dropout_gpt import DropoutGpt, data_mesh, initial_state, make_step, rewritten_step  # noqa: E402

TOLERANCE = 1e-2
"""Relative, of the norm of the final parameters: bf16 rounds to 2^-8 in each step."""


def trained(step: Any, state: Any, steps: int) -> Any:
    """The state after some steps."""
    for _ in range(steps):
        state, loss, _ = step(state)
        jax.block_until_ready(loss)
    return state


def distance(a: Any, b: Any) -> float:
    """Relative distance of the parameters of two states."""
    pairs = list(zip(jax.tree.leaves(a["params"]), jax.tree.leaves(b["params"]), strict=True))
    difference = sum(float(np.sum((np.asarray(x) - np.asarray(y)) ** 2)) for x, y in pairs)
    return (difference / sum(float(np.sum(np.asarray(x) ** 2)) for x, _ in pairs)) ** 0.5


def main() -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--layers", type=int, default=2)
    args = parser.parse_args()
    half, cfg, mesh = args.steps // 2, DropoutGpt(layers=args.layers), data_mesh()
    steps = {"without": make_step(cfg, mesh), "with": rewritten_step(cfg, mesh)}
    start = initial_state(cfg, 0, mesh)
    if not steps["with"].lower(start).report.changed:
        print("the step was not rewritten, so there is nothing to compare")
        return 1
    expected = trained(steps["without"], start, 2 * half)
    embed = start["params"]["embed"].at[0, 0].multiply(1 + 2.0 ** -8)
    nudged = {**start, "params": {**start["params"], "embed": embed}}
    other = distance(expected, trained(steps["without"], nudged, 2 * half))
    print(f"for comparison: one parameter changed in the last bit of its bf16 value: {other:.1e}")
    print(f"{'first half':<10}  {'second half':<11}  {'parameters differ by':>20}")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for first, step in steps.items():
            path = Path(folder) / f"{first}.npz"
            write_checkpoint(path, trained(step, start, half))
            for second, following in steps.items():
                found = distance(expected, trained(following, read_checkpoint(path, start), half))
                worst = max(worst, found)
                print(f"{first:<10}  {second:<11}  {found:>20.1e}", flush=True)
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
