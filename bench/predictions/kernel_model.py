"""The model of kernels on StableHLO against the schedule that XLA makes of the same program for a described H200.

Usage: ``python bench/predictions/kernel_model.py [--only programs|loops]``.

Table 1: programs of one op or a few; compute by ``KernelClock`` and by the timeline of the compiled program. Table 2:
loops of train steps, each next to the loop of the schedule with the same trip count. 1 if a program is further apart
than its bound. No GPU is needed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlorewrite.ir.module import Module

ROOT = Path(__file__).resolve().parents[2]
PROGRAM_BOUND, LOOP_BOUND = 2.0, 1.3
"""How many times longer or shorter a program or loop may be predicted."""
_LAUNCHES_S = 2e-6
"""Programs that are apart by less than two launches are not."""


@dataclass(frozen=True)
class KernelPrediction:
    """Seconds of compute of a program or loop.

    Attributes:
      name: of the program.
      clock_s: by the model on StableHLO.
      timeline_s: of the schedule.
      what: which part of the program.
    """

    name: str
    clock_s: float
    timeline_s: float
    what: str = ""

    @property
    def ratio(self) -> float:
        """Of the clock to the timeline."""
        return self.clock_s / self.timeline_s

    def within(self, bound: float) -> bool:
        """Whether both are apart by no more than a factor, or by a few launches."""
        return 1 / bound <= self.ratio <= bound or abs(self.clock_s - self.timeline_s) <= _LAUNCHES_S


def main() -> int:
    """Prints both tables; 1 when a row is beyond its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["programs", "loops"])
    args = parser.parse_args()
    os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
    sys.path[:0] = [str(ROOT / part) for part in ("bench/common", "examples", ".")]
    beyond = 0
    tables = (("programs", program_predictions, PROGRAM_BOUND), ("loops", loop_predictions, LOOP_BOUND))
    for kind, rows, bound in tables:
        if args.only in (None, kind):
            beyond += _printed(kind, rows(), bound)
    return int(beyond > 0)


def _printed(kind: str, rows: Iterator[KernelPrediction], bound: float) -> int:
    """Prints a table; how many rows are beyond the bound."""
    print(f"{kind:<40}{'':<24}{'clock us':>12}{'timeline us':>13}{'ratio':>8}")
    apart = []
    for row in rows:
        apart.append(row.within(bound))
        print(f"{row.name:<40}{row.what:<24}{row.clock_s * 1e6:>12.1f}{row.timeline_s * 1e6:>13.1f}{row.ratio:>8.2f}"
              f"{'' if apart[-1] else '  beyond the bound'}", flush=True)
    print(f"{len(apart)} {kind}, {apart.count(False)} beyond a factor of {bound:g}\n")
    return apart.count(False)


def program_predictions() -> Iterator[KernelPrediction]:
    """One op, or a few."""
    import jax
    from kernel_programs import MORE_PROGRAMS, PROGRAMS

    from hlorewrite.cost import topology
    from hlorewrite.cost.kernels.clock import KernelClock
    from hlorewrite.ir.load import parse
    from hlorewrite.ir.view import View
    from hlorewrite.timeline.simulate import simulate

    cluster = topology("h200:1x1")
    for name, (function, shapes, donated) in (PROGRAMS | MORE_PROGRAMS).items():
        module = parse(jax.jit(function, donate_argnums=donated).lower(*shapes).as_text(), name=name)
        compiled = simulate(_schedule(module, "h200:1x1"), cluster)
        yield KernelPrediction(name, KernelClock(View(module), cluster).function_seconds("main"), compiled.compute_s)


def _schedule(module: Module, target: str) -> str:
    """The scheduled HLO of a module."""
    from hlorewrite.jaxbridge.baseline.measured import scheduled
    from hlorewrite.jaxbridge.xla.compile_for import place_of
    from hlorewrite.jaxbridge.xla.target import parse_target

    return scheduled(module, place_of(parse_target(target), module), {})[0].hlo


def loop_predictions() -> Iterator[KernelPrediction]:
    """Loops of train steps; where a program and its schedule hold the same number of loops of a trip count."""
    from hlorewrite.analysis.loops import trip_count
    from hlorewrite.cost import topology
    from hlorewrite.cost.kernels.clock import KernelClock
    from hlorewrite.ir.load import parse
    from hlorewrite.ir.view import View

    target = "h200:1x8"
    for name, made in _steps().items():
        module = parse(made(), name=name)
        partitioned, schedule = _partitioned(module, target)
        view = View(partitioned)
        clock = KernelClock(view, topology(target))
        ours, theirs = defaultdict[int | None, list[float]](list), defaultdict[int | None, list[float]](list)
        for loop in view.ops("stablehlo.while"):
            ours[trip_count(loop)].append(clock.seconds(loop))
        for trips, seconds in scheduled_loops(schedule, target):
            theirs[trips].append(seconds)
        for trips, listed in ours.items():
            if trips is not None and len(listed) == len(theirs[trips]):
                for number, (clock_s, timeline_s) in enumerate(zip(listed, theirs[trips], strict=True)):
                    yield KernelPrediction(name, clock_s, timeline_s, f"loop {number} of {trips} turns")


def _steps() -> dict[str, Callable[[], bytes]]:
    """Train steps whose layers or micro-batches are loops."""
    import fsdp_example
    import large_model_steps
    import megatron_steps
    from fsdp_step import exported_fsdp_step
    from timeline_steps import LARGE, STEPS, exported_step

    return {**{step.name: (lambda step=step: exported_step(step, LARGE, 8)) for step in STEPS},
            "fsdp": lambda: exported_fsdp_step(LARGE, 8),
            **{f"stacked model {each}": (lambda each=each: fsdp_example.exported(each)) for each in "ABC"},
            "llama 8B": lambda: large_model_steps.exported(large_model_steps.STEPS["8B"][0]),
            "megatron": lambda: megatron_steps.exported(megatron_steps.MegatronModel())}


def _partitioned(module: Module, target: str) -> tuple[Module, str]:
    """What each device runs, as StableHLO and as a schedule."""
    from hlorewrite.jaxbridge.baseline.measured import scheduled
    from hlorewrite.jaxbridge.choose.candidates import partitioned_sources
    from hlorewrite.jaxbridge.xla.compile_for import place_of
    from hlorewrite.jaxbridge.xla.partition import hides_collectives
    from hlorewrite.jaxbridge.xla.target import parse_target

    place, hidden = place_of(parse_target(target), module), hides_collectives(module)
    made, dump = scheduled(module, place, {}, hidden)
    return partitioned_sources(module, place, hidden, dump)[0][1](), made.hlo


def scheduled_loops(text: str, target: str) -> Iterator[tuple[int | None, float]]:
    """(trips, seconds of compute) of each loop of a schedule, in the order of the text."""
    from hlorewrite.cost import topology
    from hlorewrite.timeline.engine import Engine, State
    from hlorewrite.timeline.program import OpCode
    from hlorewrite.timeline.simulate import ScheduledStep

    program = ScheduledStep(text, topology(target)).program
    todo, seen = [program.entry], set[str]()
    for one in todo:  # Ends: a program is added once, and there are finitely many.
        for op in one.ops:
            below = [part for part in op if hasattr(part, "ops")] + [
                part for each in op if isinstance(each, tuple) for part in each if hasattr(part, "ops")]
            if op[0] == OpCode.LOOP:
                engine = Engine(program, 0.0)
                empty = State(((),) * len(program.streams))
                yield op[5], (op[5] or 0) * engine.outcome(op[3], empty).totals.compute_s
            todo += [each for each in below if each.name not in seen]
            seen |= {each.name for each in below}


if __name__ == "__main__":
    sys.exit(main())
