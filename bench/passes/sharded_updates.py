"""Steps with ``shard_update`` next to the replicated ones: memory of arguments, bytes sent, time, values of ten calls.

``python bench/passes/sharded_updates.py [--width 4096] [--json]`` compiles for ``h200:1x8`` without a GPU, and runs on
eight CPU devices. The command fails where arguments take another size than computed, more is sent than by the
replicated step (except for the scalars that complete norms), or values differ by more than rounding explains.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))

import jax
from jax.sharding import AxisType
from sharded_update_step import DEVICES, STEPS, DataParallelStep

import hlorewrite
from hlorewrite.cost import topology
from hlorewrite.errors import ValuesDiffer
from hlorewrite.hlo.collectives import executed_bytes
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.xla.compile_for import Compilation, compile_for
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.timeline import simulate
from hlorewrite.util.progress import progress
from hlorewrite.util.tables import numbers_right, table

PIPELINE, TARGET = "comm-shift,shard-update{axis=data},comm-shift", "h200:1x8"
SCALARS, CALLS = 64, 10
WITHIN = "within the rounding bound"


@dataclass(frozen=True)
class CompiledFigures:
    """What XLA makes of a step for one device.

    Attributes:
      arguments: bytes.
      calls: of collectives.
      sent: bytes; an all-reduce of a tensor sends it twice, its halves once.
      step_us: the predicted time.
    """

    arguments: int
    calls: int
    sent: float
    step_us: float


def main() -> int:
    """Prints the table; 1 if a step misses what it should reach."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--width", type=int, default=4096, help="of the layers; default: 4096")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    with progress("steps", len(STEPS)) as shown:
        found = [measured(step, args.width, shown) for step in STEPS]
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        rows = [["step", "", "arguments B", "computed", "collectives", "sent B", "step us", "ten calls"]]
        for each in found:
            rows += [cells(each["step"], "replicated", each["replicated"], "", ""),
                     cells("", "sharded", each["sharded"], str(each["computed"]), each["values"])]
        print("\n".join(table(rows, numbers_right(rows))))
        print("missed: " + (", ".join(each["step"] for each in found if each["missed"]) or "none"))
    return int(any(each["missed"] for each in found))


def cells(step: str, form: str, figures: dict, computed: str, values: str) -> list[str]:
    """A line of the table."""
    return [step, form, str(figures["arguments"]), computed, str(figures["calls"]), f"{figures['sent']:.0f}",
            f"{figures['step_us']:.1f}", values]


def measured(step: DataParallelStep, width: int, shown: Callable[[str], None]) -> dict:
    """One step on described GPUs, and its values on CPU devices."""
    shown(step.name)
    before = parse(step.exported(width))
    after = before.clone()
    run_passes(after, parse_pipeline(PIPELINE), PassContext())
    alone, ours = (figures_of(compile_for(module, parse_target(TARGET))) for module in (before, after))
    computed = alone.arguments - step.saved(width)
    values = compared(step)
    missed = (ours.arguments != computed or ours.sent > alone.sent + SCALARS or values != WITHIN)
    return {"step": step.name, "replicated": asdict(alone), "sharded": asdict(ours), "computed": computed,
            "values": values, "missed": missed}


def figures_of(made: Compilation) -> CompiledFigures:
    """The figures of what XLA made."""
    by_kind = executed_bytes(made.collectives)
    sent = sum((2 if kind == "all-reduce" else 1) * size for kind, size in by_kind.items())
    return CompiledFigures(made.memory.argument, len(made.collectives), sent,
                           simulate(made.hlo, topology(TARGET)).step_s * 1e6)


def compared(step: DataParallelStep, width: int = 96) -> str:
    """Ten calls on CPU devices; each is compared with the replicated step on the same arguments."""
    mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
    params, state, x = step.arguments(mesh, width)
    for call in range(CALLS):
        fresh = hlorewrite.optimize(step.jitted(mesh), shard_update="data", check="first_call")
        try:
            params, state, _ = fresh(params, state, x + call)
        except ValuesDiffer as error:
            return str(error)
        if any("no bound" in sentence for sentence in fresh.first_call):
            return fresh.first_call[-1]
    return WITHIN


if __name__ == "__main__":
    sys.exit(main())
