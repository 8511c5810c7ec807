"""What memory budgets buy for a hand-written FSDP step, compiled for eight GPUs without one: bytes, time, memory.

A, B and C are steps that a user could write by hand (``fsdp_example.py``); the others are A rewritten by ``-O comm``.
The command fails where a rewritten step is beaten by A, B or C in bytes and memory together.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from fsdp_example import StackedModel, exported

from hlorewrite.cost.report.collectives import collectives_of
from hlorewrite.cost.report.report import build_report
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.choose.tuned import TuneMeasurer
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import named_pipeline
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.tune.choice import TuneChoice
from hlorewrite.util.progress import progress
from hlorewrite.util.tables import numbers_right, table

BUDGETS_MIB = (0, 2, 4, 8, 12, 1024)


def main() -> int:
    """Prints the table; 1 if a rewritten step is beaten."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="h200:1x8", metavar="NAME:HOSTSxGPUS")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    model = StackedModel()
    steps = {variant: parse(exported(variant, model), name=variant) for variant in "ABC"}
    for budget in BUDGETS_MIB:
        steps[f"A within {budget} MiB"] = rewritten(steps["A"], budget << 20, args.target)
    with progress("compiling", len(steps)) as step:
        rows = [(step(name), measured(name, module, args.target, model))[1] for name, module in steps.items()]
    if not all(row["sent"] for row in rows):
        raise SystemExit("a step contains no collectives")
    beaten = [row["step"] for row in rows[3:] if any(
        by["sent"] <= row["sent"] and by["memory_mib"] < row["memory_mib"] for by in rows[1:3])]
    if args.json:
        print(json.dumps({"target": args.target, "steps": rows, "beaten": beaten}, indent=2))
    else:
        cells = [["step", "sent / parameters", "step ms", "exposed ms", "memory MiB"],
                 *([row["step"], f"{row['sent']:.3f}", f"{row['step_ms']:.3f}", f"{row['exposed_ms']:.3f}",
                    f"{row['memory_mib']:.1f}"] for row in rows)]
        print("\n".join(table(cells, numbers_right(cells))))
        print("beaten: " + (", ".join(beaten) or "none"))
    return 1 if beaten else 0


def rewritten(module: Module, budget: int, target: str) -> Module:
    """The step through ``-O comm`` within a budget in bytes."""
    module = module.clone()
    run_passes(module, parse_pipeline(named_pipeline("comm")), PassContext(topology=target, memory_left=budget))
    return module


def measured(name: str, module: Module, target: str, model: StackedModel) -> dict:
    """Bytes that a device sends and receives in multiples of the parameters, and what the compiled step takes."""
    devices, collectives, _ = collectives_of(module)
    report = build_report(name, "stablehlo", devices, collectives)
    point = TuneMeasurer(module, target).measure(TuneChoice(""))
    return {"step": name, "sent": report.executed_bytes / model.parameter_bytes, "step_ms": (point.step_s or 0) * 1e3,
            "exposed_ms": (point.exposed_s or 0) * 1e3, "memory_mib": point.memory_bytes / 2**20}


if __name__ == "__main__":
    sys.exit(main())
