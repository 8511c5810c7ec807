"""Steps guided by a profile whose times are wrong: how long they take, over the same step without a profile.

    JAX_PLATFORMS=cpu python bench/predictions/profile_errors.py [--only TEXT] [--json]

``time`` rewrites each step, XLA compiles it for described GPUs, and its predicted times become the profile. Other
profiles lack the matrix products, to which XLA's autotuner may give other kernels and names. In others, all kernels
take half or twice as long, or each time is wrong by a factor between 0.6 and 1.6. Each schedule is then simulated with
the right times.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1] / folder) for folder in ("passes", "common")]

import decisions

from hlorewrite.jaxbridge.baseline.measured import Flags, scheduled, timed
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
from hlorewrite.jaxbridge.step.options import OPTIMIZE, StepOptions
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.profile_files import profile_options
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.util.tables import numbers_right, table

STEPS = ("ring first", "megatron tp8 remat", "gpt FSDP 4x8")
_COST = re.compile(r"cost_us: ([\d.]+)")
_PRODUCT = re.compile('name: "[^"]*(?:gemm|dot|custom-call)')
_KERNEL = re.compile('name: "[^"]*(?:fusion|gemm|dot|custom-call)')
_SEEDS = (1, 2)


def profiles(right: str) -> Iterator[tuple[str, str]]:
    """Names of profiles, and their texts."""
    lines = right.splitlines()
    yield "right", right
    yield "without products", _joined([line for line in lines if not _PRODUCT.search(line)])
    for factor in (0.5, 2.0):
        yield f"kernels x {factor:g}", _joined([_scaled(line, factor if _KERNEL.search(line) else 1) for line in lines])
    for seed in _SEEDS:
        rng = random.Random(seed)
        yield f"noise {seed}", _joined([_scaled(line, rng.uniform(0.6, 1.6)) for line in lines])


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _scaled(line: str, factor: float) -> str:
    return _COST.sub(lambda found: f"cost_us: {float(found[1]) * factor:.3f}", line)


def guided_steps(name: str) -> dict[str, float]:
    """Steps under each profile, over the step without one."""
    target, lower = decisions.steps()[name]
    module = lower()
    place = place_of(parse_target(target), module)
    made = rewrite_step(module, StepOptions.of(OPTIMIZE, {"passes": "time", "keep": "always"}), place)[0].module

    def step(flags: Flags) -> tuple[float, str]:
        found = timed(scheduled(made, place, flags)[0], place.topology)
        return found.counted_s or 0.0, found.profile

    plain, right = step({})
    return {what: step(profile_options(text))[0] / plain for what, text in profiles(right)}


def main() -> int:
    """Prints a line a step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="steps whose name contains this")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    made = {name: guided_steps(name) for name in STEPS if args.only in name}
    if args.json:
        print(json.dumps(made, indent=2))
        return 0
    head = ["step over the same without a profile", *next(iter(made.values()), {})]
    rows = [head, *([name, *(f"{share:.3f}" for share in shares.values())] for name, shares in made.items())]
    print("\n".join(table(rows, numbers_right(rows))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
