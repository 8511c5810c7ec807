"""Executed bytes of gradient reductions on eight H200s, by XLA alone and after comm-shift, with values compared.

``python bench/passes/comm_shift.py [--only TEXT] [--json] [--no-values]`` compiles every case for ``h200:1x8``
without a GPU, before and after ``comm-shift``, and divides the executed bytes of its gradient reductions in the
optimised HLO by one reduction of each gradient: 1.00 is the least a step can send. Values are compared by the
StableHLO reference interpreter. Exit code 1 when a case that may sink is above 1.00, one that may not has moved, or
values differ.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import jax.numpy as jnp
from comm_shift_cases import CASES, MICRO_BATCHES, SMALL, WIDTH, AccumulationCase
from jax.sharding import AbstractMesh, AxisType, NamedSharding

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.xla.compile_for import compile_for
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passes.comm_shift import CommShift
from hlorewrite.passmanager.base import PassContext
from hlorewrite.util.progress import mapped

VALUES_WIDTH = 8
"""The interpreter executes all eight devices one element at a time."""

KINDS = ("all-reduce", "reduce-scatter")


@dataclass(frozen=True)
class CaseMeasurement:
    """What was measured of one case; ratios are executed gradient bytes over one reduction of each gradient."""

    case: str
    sinks: bool
    xla: float
    ours: float
    changed: bool
    values: str

    @property
    def good(self) -> bool:
        """Whether the case reached what it must."""
        if self.values not in ("equal", "not compared"):
            return False
        return self.ours <= 1.005 if self.sinks else not self.changed and self.ours >= 0.995

    @property
    def note(self) -> str:
        """What is to be said next to the numbers."""
        if not self.good:
            return "BAD"
        if self.xla >= self.ours - 0.005:
            return "" if self.sinks else "must stay"
        return "XLA reduces in a narrower type" if self.sinks else "must stay; XLA moves it, wrongly"


def exported(case: AccumulationCase, width: int = WIDTH) -> Module:
    """The case as a module for eight devices, its weights ``width`` squared."""
    axes, sizes = zip(*case.mesh, strict=True)
    mesh = AbstractMesh(sizes, axes, axis_types=(AxisType.Auto,) * len(axes))
    step = jax.jit(jax.shard_map(case.step, mesh=mesh, in_specs=case.in_specs, out_specs=case.out_specs,
                                 check_vma=False))
    shapes = ((width, width), (MICRO_BATCHES, 16, width))
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))
                 for shape, spec in zip(shapes, case.in_specs, strict=True)]
    return parse(jax.export.export(step, platforms=["cuda"])(*arguments).mlir_module_serialized, name=case.name)


def executed_gradient_bytes(module: Module, case: AccumulationCase, *, protect: bool) -> float:
    """Executed bytes of reductions larger than metrics, in the optimised HLO."""
    compiled = compile_for(module, parse_target("h200:1x8"), protect=protect)
    return sum(c.executed_bytes * (1 if c.trips_known else MICRO_BATCHES) * (case.taken if c.in_branch else 1)
               for c in compiled.collectives if c.kind in KINDS and c.bytes > SMALL)


def shifted(module: Module, case: AccumulationCase) -> tuple[Module, bool]:
    """A copy after comm-shift, and whether it changed."""
    copy = module.clone()
    return copy, CommShift(wire_dtype=case.wire_dtype).run(copy, PassContext())


def measure(case: AccumulationCase, values: bool) -> CaseMeasurement:
    """One row of the table."""
    before = exported(case)
    after, changed = shifted(before, case)
    compared = "not compared"
    if values:
        small = exported(case, VALUES_WIDTH)
        report = check(small, shifted(small, case)[0], tolerance=2e-2 if case.lossy else None)
        compared = "equal" if report.equal else "DIFFER"
    alone = executed_gradient_bytes(before, case, protect=False)
    ours = executed_gradient_bytes(after, case, protect=True)
    return CaseMeasurement(case.name, case.sinks, alone / case.bytes_once, ours / case.bytes_once, changed, compared)


def main() -> int:
    """Measures every case; prints a table or JSON."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", default="", help="cases whose name contains this text")
    arguments.add_argument("--json", action="store_true", help="one JSON object for each case")
    arguments.add_argument("--no-values", dest="values", action="store_false", help="do not compare values")
    args = arguments.parse_args()
    bad = 0
    if not args.json:
        print(f"{'case':38} {'XLA alone':>9} {'comm-shift':>10}  values")
    cases = [case for case in CASES if args.only in case.name]
    for row in mapped("compiling", cases, lambda case: measure(case, args.values), name=lambda case: case.name):
        bad += not row.good
        if args.json:
            print(json.dumps(asdict(row)))
        else:
            print(f"{row.case:38} {row.xla:9.2f} {row.ours:10.2f}  {row.values:13} {row.note}".rstrip(), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
