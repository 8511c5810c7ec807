"""Auto-sharded steps for eight described H200s: what a rewritten step sends and takes, over what XLA alone does.

Usage: ``python bench/passes/against_xla.py [--only NAME] [--rounds 3]``. For each program and pipeline: bytes
(temporaries) ÷ XLA alone of what the passes make of either partitioner's program, without any judge; then what is
kept by default. The last columns are the least times of some rounds: XLA's own for the step, rewriting with
``keep="always"``, what choosing adds to it, and that as a share of XLA's; then the same share of processor time,
which other work on the machine does not change and which counts what runs at the same time twice. ``--rounds 0``
leaves them out.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()
sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

from against_xla_programs import programs  # noqa: E402

from hlorewrite.ir.module import Module  # noqa: E402
from hlorewrite.jaxbridge.baseline.measured import Measured, compiled, scheduled  # noqa: E402
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step  # noqa: E402
from hlorewrite.jaxbridge.step.options import StepOptions, as_passes  # noqa: E402
from hlorewrite.jaxbridge.step.rewrite import clone_of, rewrite  # noqa: E402
from hlorewrite.jaxbridge.xla import miscompile_workarounds, private  # noqa: E402
from hlorewrite.jaxbridge.xla.compile_for import devices_of_target  # noqa: E402
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet  # noqa: E402
from hlorewrite.jaxbridge.xla.partition import expose_collectives  # noqa: E402
from hlorewrite.jaxbridge.xla.target import parse_target  # noqa: E402
from hlorewrite.passmanager.named import named_pipeline  # noqa: E402

TARGET = "h200:1x8"
PIPELINES = {"comm-shift": "comm-shift", "comm": named_pipeline("comm")}


def ratio(ours: Measured, alone: Measured) -> str:
    """Bytes and, in brackets, temporaries over XLA alone."""
    return f"{ours.bytes / alone.bytes:.3f} ({ours.temp / alone.temp:.2f})"


def of_partitioner(module: Module, pipeline: str, place: DeviceSet, partitioner: DeviceSet, alone: Measured) -> str:
    """What the passes make of one partitioner's program."""
    from jaxlib import version as jaxlib_version
    made = rewrite(expose_collectives(module, partitioner), as_passes(pipeline), exposed=True, topology=TARGET)
    flags = miscompile_workarounds.options(jaxlib_version.__version_info__, "gpu") if made.report.changed else {}
    return ratio(scheduled(made.module, place, flags)[0], alone)


def row(name: str, module: Module, pipeline: str, place: DeviceSet, alone: Measured, rounds: int) -> list[str]:
    """One line of the table."""
    each = [of_partitioner(module.clone(), PIPELINES[pipeline], place, where, alone)
            for where in (DeviceSet("cpu"), place)]
    times: dict[str, Seconds] = {}
    comparison = None
    for keep in ("always", "better") * rounds if rounds else ("better",):
        copy, started = module.clone(), Seconds.now()
        made, _ = rewrite_step(copy, StepOptions(as_passes(PIPELINES[pipeline]), topology=TARGET, keep=keep), place)
        times[keep] = Seconds.now().since(started).least(times.get(keep))
        comparison = made.report.comparison
    kept = "original" if comparison is None or not comparison.kept else \
        f"{ratio(comparison.rewritten, alone)} {comparison.partitioner}"
    if not rounds:
        return [name, pipeline, *each, kept]
    for _ in range(rounds):
        started = Seconds.now()
        compiled(module, place, {"xla_gpu_autotune_level": 0})
        times["xla"] = Seconds.now().since(started).least(times.get("xla"))
    xla, added = times["xla"], times["better"].since(times["always"])
    return [name, pipeline, *each, kept, f"{xla.wall:.2f}", f"{times['always'].wall:.2f}", f"{added.wall:.2f}",
            f"{added.wall / xla.wall:.0%}", f"{added.cpu / xla.cpu:.0%}"]


@dataclass(frozen=True)
class Seconds:
    """Wall-clock and processor time, that of finished child processes included: XLA assembles kernels in some."""

    wall: float
    cpu: float

    @staticmethod
    def now() -> Seconds:
        """Both clocks."""
        used = os.times()
        return Seconds(time.perf_counter(), used.user + used.system + used.children_user + used.children_system)

    def since(self, start: Seconds) -> Seconds:
        """What has passed."""
        return Seconds(self.wall - start.wall, self.cpu - start.cpu)

    def least(self, other: Seconds | None) -> Seconds:
        """The less of each."""
        return self if other is None else Seconds(min(self.wall, other.wall), min(self.cpu, other.cpu))


def main() -> int:
    """Runs the bench."""
    from hlorewrite.util.tables import table
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small", choices=["tiny", "small"])
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--rounds", type=int, default=3, help="of the times")
    args = parser.parse_args()
    place = DeviceSet("gpu", tuple(devices_of_target(parse_target(TARGET), 8, "bench")))
    head = ["program", "pipeline", "CPU partitioner", "GPU partitioner", "kept", "XLA s", "rewriting s", "choosing s",
            "of XLA", "of its CPU"][:10 if args.rounds else 5]
    rows = [head]
    for name, lower in programs(args.size).items():
        if args.only not in name:
            continue
        module = clone_of(private.module_of(lower()), name)
        alone, _ = scheduled(module, place, {})
        for pipeline in PIPELINES:
            rows.append(row(name, module, pipeline, place, alone, args.rounds))
            print("\n".join(table([head, rows[-1]])[1:]), flush=True)
    print("\n".join(["", *table(rows)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
