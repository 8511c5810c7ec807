"""``hlorewrite report``: what a module communicates, how much and how long, and what a memory budget buys."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlorewrite.errors import InputError, UsageError
from hlorewrite.util.sizes import size_of_budget

if TYPE_CHECKING:
    from hlorewrite.checks.reference.rounding.summation_order import SummationOrders
    from hlorewrite.cost import Topology
    from hlorewrite.cost.report.report import CommunicationReport, Executed
    from hlorewrite.tune.memory_frontier import BudgetPoint


HELP = "show every collective of a module with line, groups, bytes, trips and predicted time, and a traffic matrix"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite report``."""
    parser.add_argument("input", metavar="IN", help="StableHLO or MPMD module, serialized jax.export, or optimised HLO "
                                                    "text; - is standard input")
    parser.add_argument("--topology", metavar="NAME:HOSTSxGPUS", help="predict times on it, such as h200:4x8")
    parser.add_argument("--vs", metavar="BEFORE", help="compare with this module")
    parser.add_argument("--mesh", metavar="AXIS=SIZE,...", help="name axes of a module that contains no mesh, such as "
                                                                "optimised HLO: data=4,model=2")
    parser.add_argument("--matrix", metavar="FILE",
                        help="write bytes from device to device: .npy, .csv, or .npz by kind")
    parser.add_argument("--plot-matrix", metavar="FILE", help="draw the matrix: PNG or SVG")
    parser.add_argument("--frontier", action="store_true",
                        help="rewrite the module (-O comm) with several memory budgets; show bytes and time against "
                             "the memory that is kept")
    parser.add_argument("--memory-budget", default=None, metavar="SIZE", type=size_of_budget,
                        help="with --frontier: mark what this budget buys")
    parser.add_argument("--plot", metavar="FILE", help="with --frontier: draw it, PNG or SVG")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite report``."""
    from hlorewrite.cost import topology
    from hlorewrite.cost.report.report import change, change_text, report_text
    from hlorewrite.util.write import check_matrix_path

    if args.frontier:
        return run_frontier(args)
    if args.plot or args.memory_budget is not None:
        raise UsageError(f"{'--plot' if args.plot else '--memory-budget'} belongs to --frontier", hint="add --frontier")
    if args.matrix:
        check_matrix_path(args.matrix)
    topo = topology(args.topology) if args.topology else None
    source, other = _Input.of(args.input), _Input.of(args.vs) if args.vs else None
    after = read_report(source, topo, args.mesh)
    before = None if other is None else read_report(other, topo, args.mesh)
    orders = None if other is None else rounding_between(other, source)
    write_matrices(args, after)
    if args.json:
        content = after.as_dict()
        if before is not None and orders is not None:
            content |= {"before": before.as_dict(), "change": change(before, after), "rounding": orders.as_dict()}
        print(json.dumps(content, indent=2))
        return 0
    print(report_text(after))
    if before is not None and orders is not None:
        print("", change_text(before, after), *orders.lines(), sep="\n")
    return 0


@dataclass(frozen=True)
class _Input:
    name: str
    data: bytes

    @classmethod
    def of(cls, path: str) -> _Input:
        from hlorewrite.ir.load import read_bytes
        return cls("<stdin>" if path == "-" else path, read_bytes(path))


def rounding_between(before: _Input, after: _Input) -> SummationOrders:
    """Compares the order of sums of two files."""
    from hlorewrite.checks.reference.rounding.summation_order import SummationOrders, summation_orders
    from hlorewrite.cost.report.collectives import looks_like_hlo
    from hlorewrite.ir.load import parse
    from hlorewrite.passmanager.programs import is_program

    if looks_like_hlo(before.data) or looks_like_hlo(after.data):
        return SummationOrders(0, reason="optimised HLO does not state the order of its sums")
    modules = [parse(each.data, name=each.name) for each in (before, after)]
    if any(map(is_program, modules)):
        return SummationOrders(0, reason="a file is a program of several meshes")
    return summation_orders(*modules)


def read_report(source: _Input, topo: Topology | None, mesh: str | None = None) -> CommunicationReport:
    """The report of a file of any known form."""
    from hlorewrite.cli.step.read_module import hlo_text
    from hlorewrite.cost.report.collectives import looks_like_hlo, parse_mesh, with_axes
    from hlorewrite.cost.report.report import build_report

    axes = parse_mesh(mesh) if mesh else None
    name, data = source.name, source.data
    if looks_like_hlo(data):
        data = hlo_text(data.decode(errors="replace"), name).encode()
    form, devices, collectives, remarks = read_collectives(data, name)
    if axes is not None:
        collectives = with_axes(collectives, axes)
    exposed, said = exposed_times(data, name, topo) if form == "hlo" and topo is not None else (None, [])
    return build_report(name, form, devices, collectives, topo, remarks=[*remarks, *said], exposed=exposed)


def exposed_times(data: bytes, name: str, topo: Topology) -> tuple[dict[str, float] | None, list[str]]:
    """The time that each collective of scheduled HLO adds to the step, by its name, and how it was found."""
    from hlorewrite.errors import HlorewriteError
    from hlorewrite.timeline import simulate
    from hlorewrite.timeline.result import unknown_line

    try:
        step = simulate(data.decode(errors="replace"), topo, name=name)
    except HlorewriteError as error:
        return None, [f"the exposed time is unknown: {error.what}"]
    said = [f"exposed time comes from a simulated schedule in which compute during a collective is {step.slowdown:.0%} "
            "slower; `hlorewrite timeline` shows the step"] if step.collectives else []
    known = {one.name: one.exposed_s for one in step.collectives if one.trips is not None}
    return known, [*said, *map(unknown_line, step.unknown)]


def read_collectives(data: bytes, name: str) -> tuple[str, int, list[Executed], list[str]]:
    """(form, devices, collectives, remarks) of a file of any known form."""
    from hlorewrite.cost.report.collectives import collectives_of_hlo, looks_like_hlo

    if looks_like_hlo(data):
        try:
            return "hlo", *collectives_of_hlo(data.decode(errors="replace"))
        except InputError as error:
            error.location = error.location or name
            raise
    from hlorewrite.cost.report.collectives import collectives_of
    from hlorewrite.ir.load import parse
    from hlorewrite.passmanager.programs import is_program, program_adapter
    module = parse(data, name=name, allow_unregistered=True)  # what it says about ops it does not know: a remark
    if is_program(module):
        return "mpmd", *program_adapter(module).collectives_of_program(module)
    return "stablehlo", *collectives_of(module)


def write_matrices(args: argparse.Namespace, report: CommunicationReport) -> None:
    """Writes and draws the communication matrix."""
    if args.matrix:
        from hlorewrite.cost.traffic import CollectiveTraffic, traffic_matrix
        from hlorewrite.util.write import write_matrix
        total, parts = report.matrix(), {}
        for kind in sorted({line.what.kind for line in report.lines}):
            parts[kind] = traffic_matrix((CollectiveTraffic(kind, line.what.payload_bytes, line.what.groups,
                                                            line.what.trips)
                                          for line in report.lines if line.what.kind == kind), report.devices)
        write_matrix(args.matrix, total, parts)
    if args.plot_matrix:
        from hlorewrite.cost.training.plots import draw_traffic, save
        save(draw_traffic(report.matrix(), title=report.name), args.plot_matrix)


# ---- ``hlorewrite report --frontier``: what a memory budget buys


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
        from hlorewrite.cost.report.collectives import collectives_of
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
        from hlorewrite.cost.report.collectives import collectives_of
        from hlorewrite.cost.report.report import build_report
        from hlorewrite.passmanager.base import PassContext
        from hlorewrite.passmanager.manager import run_passes
        from hlorewrite.tune.memory_frontier import BudgetPoint

        module = self.module.clone()
        ctx = PassContext(topology=self.spec, memory_left=budget)
        run_passes(module, self.passes, ctx)
        devices, collectives, _ = collectives_of(module)
        report = build_report(module.name, "stablehlo", devices, collectives, self.topology)
        return BudgetPoint(budget - (ctx.memory_left or 0), report.executed_bytes, report.time_s or 0.0)
