"""Training with hlorewrite against training without, next to the noise of the seed: ten seeds, 2000 steps each.

Usage: ``python bench/evidence/seeds.py [--steps 2000] [--seeds 10]``. A is the step under XLA alone, B the same step
rewritten; a seed decides initialisation, data and dropout. A' is A with one parameter changed in the last bit of its
bf16 value: what another rounding does to a training. Exit code 1 when the difference is not within the noise.

The final loss is the mean over the last tenth of the steps. A spike is a loss above the median of the 50 losses before
it by more than 6 robust standard deviations (1.4826 times their median absolute deviation).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cpu_devices import use_cpu_devices

use_cpu_devices(8)

import numpy as np  # noqa: E402
from dropout_gpt import DropoutGpt, State, data_mesh, initial_state, make_step, rewritten_step  # noqa: E402

WINDOW = 50
DEVIATIONS = 6.0
CRITICAL = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 14: 2.145,
            19: 2.093}
"""Two-sided 5 % quantiles of Student's t by degrees of freedom."""


@dataclass(frozen=True)
class SeedRun:
    """Trainings from one seed: final losses and numbers of spikes, without and with hlorewrite.

    Attributes:
      seed: the seed.
      alone: final loss without.
      nudged: the same with one parameter changed in the last bit of its bf16 value.
      rewritten: with.
      spikes_alone: without.
      spikes_rewritten: with.
    """

    seed: int
    alone: float
    nudged: float
    rewritten: float
    spikes_alone: int
    spikes_rewritten: int

    @property
    def difference(self) -> float:
        """With minus without."""
        return self.rewritten - self.alone


def spikes(losses: np.ndarray) -> int:
    """How many losses are spikes."""
    count = 0
    for step in range(WINDOW, len(losses)):
        before = losses[step - WINDOW:step]
        median = np.median(before)
        spread = 1.4826 * np.median(np.abs(before - median))
        count += bool(losses[step] > median + DEVIATIONS * spread)
    return count


def trained(step: Callable[[State], Any], cfg: DropoutGpt, seed: int, steps: int, nudge: bool = False) -> np.ndarray:
    """The loss of each step; ``nudge`` changes one parameter by 1/256 before the first."""
    state, losses = initial_state(cfg, seed, data_mesh()), []
    if nudge:
        embed = state["params"]["embed"]
        state["params"]["embed"] = embed.at[0, 0].multiply(1 + 2.0 ** -8)
    for _ in range(steps):
        state, loss, _ = step(state)
        losses.append(float(loss))  # waits: XLA's CPU devices share threads, and steps that overlap can use them up
    return np.array(losses)


def report(runs: list[SeedRun]) -> bool:
    """Prints the summary; returns whether the differences are within the noise of the seed."""
    differences = np.array([run.difference for run in runs])
    alone = np.array([run.alone for run in runs])
    noise, mean, spread = alone.std(ddof=1), differences.mean(), differences.std(ddof=1)
    t = mean / (spread / np.sqrt(len(runs))) if spread else 0.0
    limit = CRITICAL[len(runs) - 1]
    before, after = sum(run.spikes_alone for run in runs), sum(run.spikes_rewritten for run in runs)
    nudged = np.array([run.nudged - run.alone for run in runs])
    print(f"A/A: standard deviation of the final loss over seeds {noise:.5f}")
    print(f"A/A': mean paired difference {nudged.mean():+.5f}, standard deviation {nudged.std(ddof=1):.5f}")
    print(f"A/B:  mean paired difference {mean:+.5f}, standard deviation {spread:.5f}")
    print(f"paired t = {t:+.2f}; at 5 % significant beyond {limit:.2f}")
    print(f"spikes: {before} without hlorewrite, {after} with")
    fine = abs(mean) < noise and abs(t) < limit and after - before <= 2 * np.sqrt(max(before + after, 1))
    print("within the noise of the seed" if fine else "NOT within the noise of the seed")
    return fine


def main() -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=10, choices=[n + 1 for n in CRITICAL])
    args = parser.parse_args()
    cfg, mesh = DropoutGpt(), data_mesh()
    plain, shifted = make_step(cfg, mesh), rewritten_step(cfg, mesh)
    if not shifted.lower(initial_state(cfg, 0, mesh)).report.changed:
        print("the step was not rewritten, so there is nothing to compare")
        return 1
    titles = ("A", "A'", "B", "A' - A", "B - A", "spikes A", "spikes B")
    print("seed  " + "  ".join(title.rjust(9 if "-" in title else 8) for title in titles), flush=True)
    runs, tail = [], max(args.steps // 10, 1)
    for seed in range(args.seeds):
        a, b = (trained(step, cfg, seed, args.steps) for step in (plain, shifted))
        other = trained(plain, cfg, seed, args.steps, nudge=True)
        final = [float(losses[-tail:].mean()) for losses in (a, other, b)]
        run = SeedRun(seed, final[0], final[1], final[2], spikes(a), spikes(b))
        runs.append(run)
        print(f"{seed:>4}  {run.alone:8.5f}  {run.nudged:8.5f}  {run.rewritten:8.5f}  {run.nudged - run.alone:+9.5f}  "
              f"{run.difference:+9.5f}  {run.spikes_alone:>8}  {run.spikes_rewritten:>8}", flush=True)
    return 0 if report(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
