"""``hlorewrite report --frontier``: what a memory budget buys."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from hlorewrite.errors import UsageError

if TYPE_CHECKING:
    from hlorewrite.tune.memory_frontier import BudgetPoint


def run_frontier(args: argparse.Namespace) -> int:
    """Rewrites the module with several memory budgets, and shows bytes and time against memory.

    Raises:
      UsageError: a flag is missing or of no use here, or the module contains no collective.
    """
    from hlorewrite.tune.memory_frontier import frontier_data, frontier_text, memory_frontier
    from hlorewrite.util.progress import progress

    if not args.topology:
        raise UsageError("--frontier predicts times", hint="name the cluster: --topology=h200:1x8")
    other = next((flag for flag, on in (("--vs", args.vs), ("--matrix", args.matrix),
                                        ("--plot-matrix", args.plot_matrix), ("--mesh", args.mesh)) if on), None)
    if other:
        raise UsageError(f"{other} and --frontier cannot be used together", hint="leave one of them out")
    budget = args.memory_budget or 0
    measurer = _Measurer(args)
    with progress("rewriting for memory budgets", 20) as step:
        points = memory_frontier(lambda size: (step(f"{size} bytes"), measurer.measure(size))[1])
    if args.json:
        print(json.dumps(frontier_data(points, budget) | {"topology": args.topology}, indent=2))
    else:
        print(frontier_text(points, budget, args.topology))
    if args.plot:
        from hlorewrite.cost.training.plots import draw_times, save
        spots = [(point.kept_bytes / 2**30, point.collectives_s * 1e3) for point in points]
        save(draw_times(spots, [(spot, f"{point.executed_bytes / 2**20:.0f} MiB sent")
                                for spot, point in zip(spots, points, strict=True)], of="memory budget",
                        ylabel="collectives of a step, ms", title=f"on {args.topology}"), args.plot)
    return 0


class _Measurer:
    """Rewrites one module with budgets.

    Args:
      args: the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        from hlorewrite.cost import topology
        from hlorewrite.cost.report.stablehlo import collectives_of
        from hlorewrite.ir.load import parse, read_bytes
        from hlorewrite.passmanager.named import named_pipeline
        from hlorewrite.passmanager.spec import parse_pipeline

        self.spec = args.topology
        self.topology = topology(args.topology)
        self.module = parse(read_bytes(args.input), name=args.input)
        self.passes = parse_pipeline(named_pipeline("comm"))
        if not collectives_of(self.module)[1]:
            raise UsageError("the module contains no collective", location=args.input,
                             hint="write them first: hlorewrite opt --pass=expose-collectives")

    def measure(self, budget: int) -> BudgetPoint:
        """The step within a budget, in bytes."""
        from hlorewrite.cost.report.report import build_report
        from hlorewrite.cost.report.stablehlo import collectives_of
        from hlorewrite.passmanager.base import PassContext
        from hlorewrite.passmanager.manager import run_passes
        from hlorewrite.tune.memory_frontier import BudgetPoint

        module = self.module.clone()
        ctx = PassContext(topology=self.spec, memory_left=budget)
        run_passes(module, self.passes, ctx)
        devices, collectives, _ = collectives_of(module)
        report = build_report(module.name, "stablehlo", devices, collectives, self.topology)
        return BudgetPoint(budget - (ctx.memory_left or 0), report.executed_bytes, report.time_s or 0.0)
