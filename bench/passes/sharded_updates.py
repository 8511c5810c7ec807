"""Steps with ``shard_update`` next to the replicated ones: memory of arguments, bytes sent, values after ten calls.

``python bench/passes/sharded_updates.py [--width 1024] [--json]`` compiles for ``h200:1x8`` without a GPU, and runs on
eight CPU devices. The command fails where arguments take more than computed, more is sent than by the replicated step
(except for the scalars that complete norms), or values differ by more than rounding explains.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))

import jax
from jax.sharding import AbstractMesh, AxisType
from sharded_update_step import STEPS, DataParallelStep

import hlorewrite
from hlorewrite.hlo.collectives import executed_bytes
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.xla.compile_for import Compilation, compile_for
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.util.tables import numbers_right, table

PIPELINE = "comm-shift,shard-update{axis=data},comm-shift"
DEVICES, SCALARS = 8, 64


def main() -> int:
    """Prints the table; 1 where a step misses what it should reach."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--width", type=int, default=1024, help="of the layers; default: 1024")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    found = [measured(step, args.width) for step in STEPS]
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        rows = [["step", "arguments B", "sharded", "computed", "sent B", "sharded", "values"]]
        rows += [[str(cell) for cell in (each["step"], *each["arguments"], each["computed"], *each["sent"],
                                         each["values"])] for each in found]
        print("\n".join(table(rows, numbers_right(rows))))
    return int(any(each["bad"] for each in found))


def measured(step: DataParallelStep, width: int) -> dict:
    """One step on described GPUs, and its values on CPU devices."""
    before = exported(step, width)
    after = before.clone()
    run_passes(after, parse_pipeline(PIPELINE), PassContext())
    alone, ours = (compile_for(module, parse_target("h200:1x8")) for module in (before, after))
    computed = alone.memory.argument - saved(step, width)
    values = compared(step)
    sent = [sent_bytes(alone), sent_bytes(ours)]
    return {"step": step.name, "arguments": [alone.memory.argument, ours.memory.argument], "computed": computed,
            "sent": sent, "values": values,
            "bad": ours.memory.argument > computed or sent[1] > sent[0] + SCALARS or values != "within rounding"}


def exported(step: DataParallelStep, width: int) -> Module:
    """The replicated step as a module for eight GPUs."""
    mesh = AbstractMesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
    arguments = step.arguments(mesh, width, described=True)
    return parse(jax.export.export(step.jitted(mesh), platforms=["cuda"])(*arguments).mlir_module_serialized)


def saved(step: DataParallelStep, width: int) -> int:
    """Bytes of state that seven of eight devices need not hold: of all tensors with a dimension that divides."""
    mesh = AbstractMesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
    _, state, _ = step.arguments(mesh, width, described=True)
    even = [leaf for leaf in jax.tree.leaves(state) if any(size % DEVICES == 0 for size in leaf.shape)]
    return sum(leaf.size * leaf.dtype.itemsize * (DEVICES - 1) // DEVICES for leaf in even)


def sent_bytes(compiled: Compilation) -> float:
    """Bytes each device sends in a step: an all-reduce of a tensor sends it twice, its halves once."""
    by_kind = executed_bytes(compiled.collectives)
    return sum((2 if kind == "all-reduce" else 1) * size for kind, size in by_kind.items())


def compared(step: DataParallelStep, width: int = 64, calls: int = 10) -> str:
    """Ten calls of both on CPU devices; each call is compared with the replicated step on the same arguments."""
    mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
    params, state, x = step.arguments(mesh, width)
    for call in range(calls):
        fresh = hlorewrite.optimize(step.jitted(mesh), shard_update="data", check="first_call")
        params, state, _ = fresh(params, state, x + call)
    return "within rounding"


if __name__ == "__main__":
    sys.exit(main())
