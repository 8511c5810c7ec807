"""Plans steps of the sizes of 8B and 70B for described GPUs, next to XLA alone: time to plan, bytes, step, memory.

Steps are rewritten within ``memory-budget=auto`` and compiled up to the generation of code; no GPU is needed. The
command fails where a step sends more or takes longer than XLA alone, does not fit into a device, or takes more than a
minute of processor time to plan.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from large_model_steps import STEPS, exported

from hlorewrite.cost import topology
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.baseline.comparison import XlaComparison, compared_modules
from hlorewrite.jaxbridge.baseline.memory_grant import granted
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import named_pipeline
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.listener import Recorder
from hlorewrite.util.tables import numbers_right, table

MOST_SECONDS = 60
DECIDES = ("gather-once", "comm-shift")


def main() -> int:
    """Prints the table; 1 if a step is worse than XLA alone, does not fit, or takes long to plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-O", dest="pipeline", default="time", choices=("comm", "time"), help="default: time")
    parser.add_argument("--tensors", action="store_true", help="also print which tensors changed, and why")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    steps = [planned(name, args.pipeline) for name in STEPS]
    if args.json:
        print(json.dumps(steps, indent=2))
    else:
        rows = [["step", "", "planned in s", "sent GiB", "step s", "exposed s", "memory GiB", "of"]]
        for step in steps:
            rows += [_row(step, side) for side in ("xla_alone", "rewritten")]
        print("\n".join(table(rows, numbers_right(rows))))
        for step in steps if args.tensors else []:
            print(f"{step['step']}:", *step["tensors"], sep="\n  ")
    worse = [str(step["step"]) for step in steps if step["worse"]]
    if worse:
        print("worse than XLA alone, too large or planned for too long: " + ", ".join(worse), file=sys.stderr)
    return 1 if worse else 0


def planned(name: str, pipeline: str) -> dict:
    """Plans a step for its target; the time is processor time from the module to the decision."""
    model, target = STEPS[name]
    original = parse(exported(model), name=name)
    started = time.process_time()
    place = place_of(parse_target(target), original)
    grant = granted("auto", original, place, place.topology)
    rewritten, recorder = original.clone(), Recorder()
    run_passes(rewritten, parse_pipeline(f"expose-collectives,{named_pipeline(pipeline)}"),
               PassContext((recorder,), topology=target, target=target, memory_left=grant.bytes))
    made = compared_modules(original, rewritten, target, budget=grant.bytes)
    if made is None:
        raise SystemExit(f"{name}: the passes changed nothing")
    seconds, capacity = time.process_time() - started, int(topology(target).memory_bytes)
    tensors = list(dict.fromkeys(
        f"{remark.location}: {remark.rule}: {remark.sentence} [{remark.about}]" for remark in recorder.remarks
        if remark.kind == "applied" and remark.rule in DECIDES))
    return {"step": name, "target": target, "planned_s": seconds, "budget": grant.text, "device_bytes": capacity,
            **{side: {"sent": each.bytes, "step_s": each.step_s, "exposed_s": each.exposed_s, "memory": each.memory}
               for side, each in (("xla_alone", made.alone), ("rewritten", made.ours))},
            "tensors": tensors, "worse": _worse(made, capacity) or seconds > MOST_SECONDS}


def _worse(made: XlaComparison, capacity: int) -> bool:
    alone, ours = made.alone, made.ours
    slower = alone.step_s is None or ours.step_s is None or ours.step_s > alone.step_s
    return not made.kept or slower or ours.memory > capacity


def _row(step: dict, side: str) -> list[str]:
    numbers, ours = step[side], side == "rewritten"
    return ["" if ours else f"{step['step']} {step['target']}", side.replace("xla_alone", "XLA alone"),
            f"{step['planned_s']:.1f}" if ours else "", f"{numbers['sent'] / 2**30:.1f}", f"{numbers['step_s']:.2f}",
            f"{numbers['exposed_s']:.2f}", f"{numbers['memory'] / 2**30:.1f}", f"{step['device_bytes'] / 2**30:.1f}"]


if __name__ == "__main__":
    sys.exit(main())
