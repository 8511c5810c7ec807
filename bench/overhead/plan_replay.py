"""What replaying a plan costs in addition to making it: GPT steps, each in fresh processes, as on a restart.

Usage: ``python bench/overhead/plan_replay.py [--size small] [--rounds 3]``. Making is partitioning, passes and the
comparison with XLA alone, and writing the plan; replaying is reading and checking it. Both start from the lowered
step. The least time of a few rounds is shown. Exit code 1 if replaying takes more than a tenth.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYOUTS = ("manual", "dp", "dp_tp", "fsdp")
MOST = 0.1


def planned(size: str, layout: str, path: str) -> float:
    """Seconds of one step through a plan file, in this process."""
    sys.path[:0] = [str(ROOT / "examples"), str(ROOT)]
    import auto_gpt
    import gpt

    from hlorewrite.jaxbridge.choose.planned import planned_step
    from hlorewrite.jaxbridge.step.options import StepOptions, as_passes
    from hlorewrite.jaxbridge.step.rewrite import clone_of
    from hlorewrite.jaxbridge.xla import private
    from hlorewrite.jaxbridge.xla.compile_no_codegen import device_set
    from hlorewrite.lockfile.files import PlanFiles
    from hlorewrite.passmanager.named import named_pipeline

    cfg, mesh = gpt.SIZES[size], auto_gpt.make_mesh("dp" if layout == "manual" else layout)
    module = gpt if layout == "manual" else auto_gpt
    lowered = module.make_step(cfg, mesh).lower(*module.arguments(cfg, mesh))
    place = device_set("cpu", private.devices_of(lowered), private.compiler_options_of(lowered))
    settings = StepOptions(as_passes(named_pipeline("comm")))
    start = time.perf_counter()
    planned_step(clone_of(private.module_of(lowered), "step"), settings, place, PlanFiles(path))
    return time.perf_counter() - start


def in_fresh_process(size: str, layout: str, path: str) -> float:
    """The same in a process of its own."""
    environment = dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3",
                       XLA_FLAGS="--xla_force_host_platform_device_count=8")
    words = [sys.executable, __file__, "--size", size, "--one", layout, path]
    return float(subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout)


def main() -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small", choices=["tiny", "small"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("LAYOUT", "PLAN"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(planned(args.size, *args.one))
        return 0
    print(f"{'step':<8}  {'making s':>8}  {'replaying s':>11}  {'share':>6}  {'plan KiB':>8}")
    worst = 0.0
    for layout in LAYOUTS:
        made, replayed = [], []
        with tempfile.TemporaryDirectory() as folder:
            for number in range(args.rounds):
                path = str(Path(folder) / f"{number}.plan")
                made.append(in_fresh_process(args.size, layout, path))
                replayed.append(in_fresh_process(args.size, layout, path))
            size = (Path(folder) / "0.plan").stat().st_size / 1024
        share = min(replayed) / min(made)
        worst = max(worst, share)
        print(f"{layout:<8}  {min(made):8.2f}  {min(replayed):11.3f}  {share:6.1%}  {size:8.1f}", flush=True)
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
