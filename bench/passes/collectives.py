"""What passes save on collectives, in optimised HLO, compared with XLA alone in the same run.

Every case is compiled for described GPUs as written and after ``-O comm``; values are compared on the StableHLO
interpreter and on a CPU mesh with small shapes. ``python bench/passes/collectives.py --json`` prints numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from collective_cases import CASES, CollectiveCase, backward_pass
from exposed_time import exposed_time

from hlorewrite.checks.reference.check import check
from hlorewrite.cost import collective_model, topology
from hlorewrite.cost.collectives.bandwidth import bus_factor
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.xla.compile_for import Compilation, compile_for
from hlorewrite.jaxbridge.xla.execute import verify
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.timeline.simulate import ScheduledStep

TARGETS = ("h200:1x8", "h200:2x8")
BLOCKS, WIDTH = 25, 1024
"""Of the step of 200 gradients."""
SLOWDOWNS = (0.0, 0.2)
"""Of compute next to collectives, at which the timeline gives the time of a step."""


def rewritten(text: str, spec: str, pipeline: str = "comm", *, ignore_cost: bool = False) -> tuple[Module, Module]:
    """A module as written and after a pipeline."""
    before, after = parse(text, name="case"), parse(text, name="case")
    run_passes(after, parse_pipeline(pipeline), PassContext(topology=spec, ignore_cost=ignore_cost))
    return before, after


def amounts(made: Compilation, spec: str) -> dict[str, float]:
    """Executed payload, payload times wire factor, and modelled microseconds of all collectives of a module."""
    times = collective_model(topology(spec))
    wire = sum(c.executed_bytes * (1 if c.kind == "collective-permute" else bus_factor(c.kind, len(c.groups[0])))
               for c in made.collectives)
    seconds = sum(c.trips * times.collective_time(c.kind, c.bytes, c.groups) for c in made.collectives)
    return {"collectives": sum(c.trips for c in made.collectives),
            "executed_bytes": sum(c.executed_bytes for c in made.collectives), "wire_bytes": wire,
            "time_us": seconds * 1e6}


def one_case(case: CollectiveCase, spec: str) -> dict[str, object]:
    """One program on one target."""
    devices = parse_target(spec).devices
    before, after = rewritten(case.text(devices, case.rows), spec)
    xla = amounts(compile_for(before, parse_target(spec)), spec)
    ours = amounts(compile_for(after, parse_target(spec)), spec)
    small = rewritten(case.text(8, 16), "h200:1x8", ignore_cost=True)
    same = check(*small).equal
    cpu = verify(*small, parse_target("cpu:8")).equal
    return {"case": case.name, "target": spec, "xla": xla, "hlorewrite": ours,
            "executed_ratio": ours["executed_bytes"] / max(xla["executed_bytes"], 1),
            "wire_ratio": ours["wire_bytes"] / max(xla["wire_bytes"], 1), "oracle_equal": same, "cpu_equal": cpu}


def backward(spec: str, tokens: int, flags: Mapping[str, str | bool], blocks: int = BLOCKS,
             width: int = WIDTH) -> dict[str, object]:
    """200 gradients of a step, or eight of each block, by the model on what XLA made of it.

    Exposed is what a step takes beyond its kernels. Both sides have the same kernels to run; XLA fuses some of them
    into copies for the buffers of collectives, so the smaller sum of kernels that are not copies counts for both.
    """
    cluster = topology(spec)
    times = collective_model(cluster)
    before, after = rewritten(backward_pass(parse_target(spec).devices, blocks, width, tokens), spec)
    row: dict[str, object] = {"case": f"{8 * blocks} gradients, {tokens} tokens", "target": spec}
    made = {name: compile_for(module, parse_target(spec), xla_flags=flags)
            for name, module in (("xla", before), ("hlorewrite", after))}
    exposed = {(name, how): exposed_time(each.hlo, cluster, times, scheduled=how == "exposed_as_scheduled_us")
               for name, each in made.items() for how in ("exposed_us", "exposed_as_scheduled_us")}
    compute = min(one.compute for one in exposed.values())
    for name, each in made.items():
        timeline = ScheduledStep(each.hlo, cluster)
        steps = {f"step_{slowdown:.0%}_us": timeline.at(slowdown).step_s * 1e6 for slowdown in SLOWDOWNS}
        row[name] = {**amounts(each, spec), **steps, "compute_us": compute * 1e6, "temp_mib": each.memory.temp / 2**20,
                     **{how: (exposed[name, how].total - compute) * 1e6
                        for how in ("exposed_us", "exposed_as_scheduled_us")}}
    small = rewritten(backward_pass(8, 2, 8, 16), "h200:1x8")
    row["oracle_equal"] = check(*small, tolerance=0.1).equal
    row["cpu_equal"] = verify(*small, parse_target("cpu:8"), tolerance=0.1).equal
    return row


def table(rows: Sequence[dict]) -> str:
    """A table for people."""
    lines = [f"{'case':28} {'target':9} {'XLA alone':>22} {'hlorewrite':>22} {'payload':>8} {'wire':>6}  values"]
    for row in rows:
        x, o = row["xla"], row["hlorewrite"]
        values = "equal" if row["oracle_equal"] and row["cpu_equal"] else "DIFFER"
        left, right = ((f"{s['collectives']:.0f} x, {s['executed_bytes'] / 2**20:.1f} MiB") for s in (x, o))
        lines.append(f"{row['case']:28} {row['target']:9} {left:>22} {right:>22} "
                     f"{o['executed_bytes'] / max(x['executed_bytes'], 1):8.2f} "
                     f"{o['wire_bytes'] / max(x['wire_bytes'], 1):6.2f}  {values}")
        if "exposed_us" in x:
            for key, what, unit in (("exposed_us", "exposed, by data", "us "),
                                    ("exposed_as_scheduled_us", "exposed, as scheduled", "us "),
                                    ("step_0%_us", "step, by the timeline", "us "),
                                    ("step_20%_us", "step at 20 % slowdown", "us "),
                                    ("temp_mib", "temporary memory", "MiB")):
                lines.append(f"  {what:26} {'':9} {x[key]:18.0f} {unit} {o[key]:18.0f} {unit} {o[key] / x[key]:8.2f}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--target", action="append", help="only this target, such as h200:2x8")
    parser.add_argument("--tokens", type=int, action="append", help="tokens of a device in the step of 200 gradients")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="blocks of that step, of eight gradients each")
    parser.add_argument("--width", type=int, default=WIDTH, help="width of its blocks")
    parser.add_argument("--only", choices=("cases", "gradients"), help="only one part")
    parser.add_argument("--xla-flag", action="append", default=[], metavar="NAME=VALUE",
                        help="compile the step of 200 gradients with an XLA flag")
    args = parser.parse_args()
    flags = {name: {"true": True, "false": False}.get(value, value)
             for name, value in (flag.split("=", 1) for flag in args.xla_flag)}
    rows: list[dict] = []
    for spec in args.target or TARGETS:
        if args.only != "gradients":
            rows += [one_case(case, spec) for case in CASES]
        if args.only != "cases":
            rows += [backward(spec, tokens, flags, args.blocks, args.width) for tokens in args.tokens or (8192, 2048)]
    sys.stdout.write(json.dumps(rows, indent=2) + "\n" if args.json else table(rows))


if __name__ == "__main__":
    main()
