"""Exposed time of GPT train steps compiled for described H200s, and the targets of the pipeline ``time``.

Usage: ``python bench/passes/overlap.py [--target h200:1x8,h200:4x8] [--only A,FSDP] [--code] [--unseen]``. Each step is
compiled as it is, with each published set of XLA flags (the shortest step is XLA's best), and after the pipelines
``comm-shift``, ``comm`` and ``time``, up to the generation of code. Times are of XLA's schedule, simulated at a
slowdown of 0 and of 20 % of compute next to collectives. After the table each target stands with its figure, ``pass``
or ``miss``. Steps: ``A scanned``, ``A unrolled`` (gradients averaged in every micro-batch), ``FSDP`` (by hand),
``FSDP auto`` (partitioned by XLA). ``--code`` adds the processor time of complete compilations, the
least of three; ``--unseen`` measures other sizes and numbers of micro-batches, and compares step times alone.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STEPS = ("A scanned", "A unrolled", "FSDP", "FSDP auto")
MOST_GPUS = 128
SIZES = {"2 layers, m=1": (2, 1024, 1), "2 layers, m=2": (2, 2048, 2), "4 layers, m=4": (4, 1024, 4)}
"""Layers, width and micro-batches of steps that no threshold was set by."""


def main() -> int:
    """Prints the table and the targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="h200:1x8,h200:4x8", help="described GPUs, comma-separated")
    parser.add_argument("--only", default="", help="steps whose name contains one of these, comma-separated")
    parser.add_argument("--code", action="store_true", help="also compile to the end, for processor time")
    parser.add_argument("--unseen", action="store_true", help="steps of other sizes")
    args = parser.parse_args()
    os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
    os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") +
                               f" --xla_force_host_platform_device_count={MOST_GPUS}").strip()
    sys.path += [str(ROOT / "bench" / "common"), str(ROOT / "examples"), str(ROOT)]
    from dataclasses import replace

    from overlap_rows import HEAD, StepRows, rows_of
    from overlap_targets import verdicts
    from timeline_steps import LARGE
    sizes = {f", {name}": replace(LARGE, vocab=8192, layers=layers, width=width, micro_batches=m)
             for name, (layers, width, m) in SIZES.items()} if args.unseen else {"": LARGE}
    measured: list[StepRows] = []
    print(HEAD)
    for step in STEPS:
        if not any(part in step for part in args.only.split(",")):
            continue
        for target, (name, cfg) in itertools.product(args.target.split(","), sizes.items()):
            measured.append(rows_of(step, target, cfg, with_code=args.code, name=step + name))
            print("\n".join(measured[-1].lines()), flush=True)
    print()
    print("\n".join(_lines(verdicts(measured, steps_only=args.unseen))))
    return 0


def _lines(verdicts: list[tuple[str, str, str, bool]]) -> Iterator[str]:
    for step, target, sentence, reached in verdicts:
        yield f"{'pass' if reached else 'miss':<6}{step:<28}{target:<11}{sentence}"


if __name__ == "__main__":
    sys.exit(main())
