"""Steps with ``partial_state`` next to those of ``jax.jit``: bytes of calls that accumulate and that update, values.

``python bench/passes/partial_sums.py [--width 4096] [--json]`` compiles for ``h200:1x8`` without a GPU, and runs twelve
calls on eight CPU devices. The command fails where a call that accumulates sends gradients, one that updates sends
more than before, arguments take more than the counters before, or values differ.
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
import numpy as np
from accumulating_steps import DEVICES, STEPS, AccumulatingStep
from jax.sharding import AxisType

import hlorewrite
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.xla.compile_for import Compilation, compile_for
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.util.progress import progress
from hlorewrite.util.tables import numbers_right, table

PIPELINE, TARGET = "expose-collectives,comm-shift,partial-state{axis=data}", "h200:1x8"
SCALARS, CALLS = 64, 12


@dataclass(frozen=True)
class SentInCalls:
    """What XLA makes of a step for one device.

    Attributes:
      arguments: bytes.
      accumulating: bytes of collectives in calls that only accumulate.
      updating: bytes in calls that update.
      temporaries: bytes.
    """

    arguments: int
    accumulating: int
    updating: int
    temporaries: int


def main() -> int:
    """Prints the table; 1 if a step misses what it should reach."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--width", type=int, default=4096, help="of the layer; default: 4096")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    with progress("steps", len(STEPS)) as shown:
        found = [measured(step, args.width, shown) for step in STEPS]
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        rows = [["step", "", "arguments B", "temporaries B", "accumulating B", "updating B", "largest difference"]]
        for each in found:
            rows += [cells(each["step"], "jax.jit", each["plain"], ""),
                     cells("", "partial_state", each["partial"], f"{each['difference']:.1e}")]
        print("\n".join(table(rows, numbers_right(rows))))
        print("missed: " + (", ".join(each["step"] for each in found if each["missed"]) or "none"))
    return int(any(each["missed"] for each in found))


def cells(step: str, form: str, figures: dict, difference: str) -> list[str]:
    """A line of the table."""
    return [step, form, str(figures["arguments"]), str(figures["temporaries"]), str(figures["accumulating"]),
            str(figures["updating"]), difference]


def measured(step: AccumulatingStep, width: int, shown: Callable[[str], None]) -> dict:
    """One step on described GPUs, and its values on CPU devices."""
    shown(step.name)
    before = parse(step.exported(width))
    after = before.clone()
    run_passes(after, parse_pipeline(PIPELINE), PassContext())
    plain, partial = (sent(compile_for(module, parse_target(TARGET))) for module in (before, after))
    difference = largest_difference(step)
    missed = (partial.accumulating > SCALARS or partial.updating > plain.updating or difference > 1e-5
              or partial.arguments > plain.arguments + SCALARS)
    return {"step": step.name, "plain": asdict(plain), "partial": asdict(partial), "difference": difference,
            "missed": missed}


def sent(made: Compilation) -> SentInCalls:
    """The figures of what XLA made."""
    always = sum(each.executed_bytes for each in made.collectives if not each.in_branch)
    return SentInCalls(made.memory.argument, always, sum(each.executed_bytes for each in made.collectives),
                       made.memory.temp)


def largest_difference(step: AccumulatingStep, width: int = 64) -> float:
    """Of the state of some calls, relative to its largest value."""
    mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
    plain = step.jitted(mesh)
    partial = hlorewrite.optimize(plain, partial_state="data")
    expected, x = step.arguments(mesh, width)
    found, worst = expected, 0.0
    for call in range(CALLS):
        expected, found = plain(expected, x + call)[0], partial(found, x + call)[0]
        for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(partial.whole(found)), strict=True):
            scale = float(np.abs(one).max()) or 1.0
            worst = max(worst, float(np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)).max()) / scale)
    return worst


if __name__ == "__main__":
    sys.exit(main())
