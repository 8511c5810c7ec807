"""Random numbers with and without hlorewrite: keys and dropout masks after some steps, bit by bit.

Usage: ``python bench/evidence/random_state.py [--steps 50] [--layers 2]``. The step draws its batches and its dropout
from the key in its state. Exit code 1 when a key or a mask differs.
"""

from __future__ import annotations

import argparse
import sys

from cpu_devices import use_cpu_devices

use_cpu_devices(8)

import numpy as np  # noqa: E402
from dropout_gpt import DropoutGpt, data_mesh, initial_state, make_step, rewritten_step  # noqa: E402


def main() -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--layers", type=int, default=2)
    args = parser.parse_args()
    steps, cfg, mesh = args.steps, DropoutGpt(layers=args.layers), data_mesh()
    plain, shifted = make_step(cfg, mesh), rewritten_step(cfg, mesh)
    states = [initial_state(cfg, 0, mesh)] * 2
    if not shifted.lower(states[0]).report.changed:
        print("the step was not rewritten, so there is nothing to compare")
        return 1
    masks_differ = keys_differ = bits = 0
    drawn = set()
    for _ in range(steps):
        results = [step(state) for step, state in zip((plain, shifted), states, strict=True)]
        states = [result[0] for result in results]
        masks = [np.asarray(result[2]) for result in results]
        keys = [np.asarray(state["key"]) for state in states]
        masks_differ += not np.array_equal(masks[0], masks[1])
        keys_differ += not np.array_equal(keys[0], keys[1])
        bits += int(masks[0].size)
        drawn.add(keys[0].tobytes())
    print(f"{steps} steps: {keys_differ} keys and {masks_differ} sums of dropout masks differ ({bits} sums of bits; "
          f"{len(drawn)} different keys)")
    return 1 if keys_differ or masks_differ or len(drawn) != steps else 0


if __name__ == "__main__":
    sys.exit(main())
