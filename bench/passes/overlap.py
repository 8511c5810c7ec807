"""What hides communication: exposed time of GPT train steps compiled for described H200s, by the timeline.

Usage: ``python bench/passes/overlap.py [--targets h200:1x8,h200:4x8]``. Each step is compiled as it is and after the
pipelines ``comm`` and ``time``; times are of XLA's schedule, simulated at a slowdown of 0 and of 20 % of compute next
to collectives.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIPELINES = {"XLA alone": "", "comm-shift": "comm-shift", "comm": "comm", "time": "time"}


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="h200:1x8,h200:4x8")
    parser.add_argument("--steps", default="A scanned,A unrolled,FSDP")
    args = parser.parse_args()
    os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
    sys.path[:0] = [str(ROOT / "bench" / "common"), str(ROOT / "examples"), str(ROOT)]
    print(f"{'step':<12}{'target':<10}{'pipeline':<12}{'step':>9}{'exposed':>9}{'exposed':>9}{'executed':>10}"
          f"{'temporaries':>13}{'compile':>9}\n{'':<34}{'ms':>9}{'ms':>9}{'at 20 %':>9}{'MiB':>10}{'MiB':>13}{'s':>9}")
    for step in args.steps.split(","):
        for text in args.targets.split(","):
            exported = exported_step_of(step, text)
            for name, pipeline in PIPELINES.items():
                print(f"{step:<12}{text:<10}{name:<12}{measured(exported, pipeline, text)}", flush=True)
    return 0


def exported_step_of(name: str, target: str) -> bytes:
    """A step by the name it has in the table, for the devices of a target."""
    from fsdp_step import exported_fsdp_step
    from timeline_steps import LARGE, STEPS, exported_step

    from hlorewrite.jaxbridge.xla.target import parse_target
    devices = parse_target(target).devices
    if name == "FSDP":
        return exported_fsdp_step(LARGE, devices)
    return exported_step(next(step for step in STEPS if step.name == name), LARGE, devices)


def measured(exported: bytes, pipeline: str, text: str) -> str:
    """One row: the step compiled after a pipeline."""
    from hlorewrite.cost import topology
    from hlorewrite.hlo.collectives import executed_bytes
    from hlorewrite.ir.load import parse
    from hlorewrite.jaxbridge.xla.compile_for import compile_for
    from hlorewrite.jaxbridge.xla.target import parse_target
    from hlorewrite.passmanager.base import PassContext
    from hlorewrite.passmanager.manager import run_passes
    from hlorewrite.passmanager.spec import parse_pipeline
    from hlorewrite.timeline.simulate import ScheduledStep

    module = parse(exported, name="step")
    if pipeline:
        run_passes(module, parse_pipeline(pipeline), PassContext(topology=text))
    compiled = compile_for(module, parse_target(text))
    step = ScheduledStep(compiled.hlo, topology(text))
    free, slowed, sent = step.at(0.0), step.at(0.2), sum(executed_bytes(compiled.collectives).values())
    return (f"{free.step_s * 1e3:9.1f}{free.exposed_s * 1e3:9.2f}{slowed.exposed_s * 1e3:9.2f}{sent / 2**20:10.0f}"
            f"{compiled.memory.temp / 2**20:13.0f}{compiled.compile_s:9.1f}")


if __name__ == "__main__":
    sys.exit(main())
