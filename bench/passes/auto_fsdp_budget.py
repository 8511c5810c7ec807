"""Auto-sharded FSDP GPT steps within a memory budget, over the bytes of a step that gathers and scatters once.

``python bench/passes/auto_fsdp_budget.py [--layers 4] [--json]`` compiles for ``h200:1x8`` without a GPU. The budget is
one copy of the parameters in the type they are computed with, and one copy of the gradients in float32. The floor is
one gather of the first and one scatter of the second. The command fails where a step without a budget sends more than
XLA alone, or one within it more than 1.3 times the floor.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from math import prod
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()
sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "examples"),
                str(Path(__file__).resolve().parents[2])]

from dataclasses import replace  # noqa: E402

import gpt  # noqa: E402
import jax  # noqa: E402
from against_xla_programs import LAYOUTS, gpt_step  # noqa: E402

from hlorewrite.jaxbridge.baseline.measured import Measured, scheduled  # noqa: E402
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step  # noqa: E402
from hlorewrite.jaxbridge.step.options import StepOptions, as_passes  # noqa: E402
from hlorewrite.jaxbridge.step.rewrite import clone_of  # noqa: E402
from hlorewrite.jaxbridge.xla import private  # noqa: E402
from hlorewrite.jaxbridge.xla.compile_for import devices_of_target  # noqa: E402
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet  # noqa: E402
from hlorewrite.jaxbridge.xla.target import parse_target  # noqa: E402
from hlorewrite.passmanager.named import PIPELINES, named_pipeline  # noqa: E402
from hlorewrite.util.progress import progress  # noqa: E402
from hlorewrite.util.tables import numbers_right, table  # noqa: E402

TARGET, LAYOUT, MOST = "h200:1x8", "fsdp constrained", 1.3


def main() -> int:
    """Prints the table; 1 if a step misses what it should reach."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, default=4, help="default: 4")
    parser.add_argument("--size", default="small", choices=["tiny", "small"])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    lowered = gpt_step(replace(gpt.SIZES[args.size], layers=args.layers), LAYOUTS[LAYOUT])
    found = rows_of(lowered)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        rows = [["step", "budget MiB", "sent MiB", "over the floor", "temporaries MiB", ""]]
        rows += [[row["step"], f"{row['budget'] / 2**20:.1f}" if row["budget"] else "", f"{row['sent'] / 2**20:.1f}",
                  f"{row['over_floor']:.2f}", f"{row['temporaries'] / 2**20:.1f}", "missed" if row["missed"] else ""]
                 for row in found]
        print("\n".join(table(rows, numbers_right(rows))))
    return int(any(row["missed"] for row in found))


def rows_of(lowered: jax.stages.Lowered) -> list[dict]:
    """XLA alone, and each pipeline without and within the budget."""
    place = DeviceSet("gpu", tuple(devices_of_target(parse_target(TARGET), 8, "bench")))
    module = clone_of(private.module_of(lowered), LAYOUT)
    floor = 2 * parameter_bytes(lowered)  # computed with in float32: gathered once, scattered once
    alone, _ = scheduled(module.clone(), place, {})
    found = [figures("XLA alone", None, alone, floor, False)]
    with progress("pipelines", 2 * len(PIPELINES)) as shown:
        for name in PIPELINES:
            for budget in (None, floor):
                shown(f"{name}{' within a budget' if budget else ''}")
                settings = StepOptions(as_passes(named_pipeline(name)), topology=TARGET, memory_budget=budget)
                comparison = rewrite_step(module.clone(), settings, place)[0].report.comparison
                made = comparison.rewritten if comparison is not None and comparison.kept else alone
                missed = made.bytes > MOST * floor if budget else made.bytes > alone.bytes
                found.append(figures(name, budget, made, floor, missed))
    return found


def figures(step: str, budget: int | None, made: Measured, floor: int, missed: bool) -> dict:
    """What is known about one step."""
    return {"step": step, "budget": budget, "sent": made.bytes, "over_floor": made.bytes / floor,
            "temporaries": made.temp, "missed": missed}


def parameter_bytes(lowered: jax.stages.Lowered) -> int:
    """Bytes of all parameters, which the first argument holds next to the state of the optimizer."""
    state = lowered.args_info[0][0]
    return sum(leaf.dtype.itemsize * prod(leaf.shape) for leaf in jax.tree.leaves(state["params"]))


if __name__ == "__main__":
    sys.exit(main())
