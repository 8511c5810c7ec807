"""``hlorewrite pipeline``: predicts the cost of a pipeline schedule; ``run`` executes it, and prints values and times.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hlorewrite.pipelines.schedules import Schedule
    from hlorewrite.pipelines.simulate import Description, Simulation

HELP = "simulate pipeline schedules (iteration time, bubble, exposed communication, memory), or run a program with them"
ACTIONS = ("simulate", "run", "search", "schedules")

Value = TypeVar("Value", int, float)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite pipeline``."""
    parser.add_argument("action", metavar="ACTION",
                        help="simulate: one step of a pipeline; run: a program on devices, by one "
                        "schedule or all that fit; search: the best pipelines for a step without marks; schedules: "
                        "list all schedules")
    parser.add_argument("program", nargs="?", metavar="PROGRAM", help="a program of several meshes, as split-stages "
                        "writes it (.mlir), instead of a pipeline that flags describe")
    _schedule_arguments(parser)
    _cost_arguments(parser)
    _machine_arguments(parser)
    from hlorewrite.pipelines.cli.run import add_run_arguments
    from hlorewrite.pipelines.cli.search import add_search_arguments
    add_run_arguments(parser)
    add_search_arguments(parser)
    out = parser.add_argument_group("output")
    out.add_argument("--gantt", metavar="FILE", help="draw the step: PNG or SVG")
    out.add_argument("--trace", metavar="PATH", help="write the step: NAME.json for Perfetto or chrome://tracing, or a "
                                                     "directory for `hlorewrite view`")
    out.add_argument("--json", action="store_true", help="print one JSON object")


def _schedule_arguments(parser: argparse.ArgumentParser) -> None:
    order = parser.add_argument_group("schedule")
    order.add_argument("--schedule", metavar="NAME", help="gpipe, 1f1b, eager-1f1b, interleaved-1f1b, zb-h1, zb-h2 or "
                                                          "dualpipe-v (default: 1f1b)")
    order.add_argument("--table", metavar="FILE", help='your own schedule: one line per stage, such as "F0 F1 B0 B1"')
    order.add_argument("--stages", type=int, metavar="N", help="number of meshes (default: that of --meshes)")
    order.add_argument("--microbatches", type=int, metavar="M", help="micro-batches of a step")
    order.add_argument("--chunks", type=int, metavar="V", help="parts of the model on each mesh, for interleaved-1f1b")
    order.add_argument("--max-live", type=int, metavar="K", help="refuse more than K micro-batches alive on a mesh")


def _cost_arguments(parser: argparse.ArgumentParser) -> None:
    cost = parser.add_argument_group("costs", "one value, or one for each stage separated by commas")
    cost.add_argument("--fwd", metavar="TIME", help="forward pass of a micro-batch on a stage, such as 1ms")
    cost.add_argument("--bwd", metavar="TIME", help="its backward pass (default: twice the forward pass)")
    cost.add_argument("--bwd-weight", metavar="TIME", help="the part of the backward pass that computes weight "
                                                           "gradients; zero-bubble schedules run it later "
                                                           "(default: half)")
    cost.add_argument("--update", metavar="TIME", help="the optimizer's step (default: 0)")
    cost.add_argument("--act-bytes", metavar="SIZE", help="activation of a micro-batch that a stage sends to the next, "
                                                          "whole tensor (default: 0)")
    cost.add_argument("--grad-bytes", metavar="SIZE", help="weight gradients of one device, all-reduced over the data "
                                                           "axis (default: 0)")
    cost.add_argument("--live-bytes", metavar="SIZE", help="bytes that a device keeps per micro-batch until its "
                                                           "backward pass (default: its share of the activation)")
    cost.add_argument("--static-bytes", metavar="SIZE", help="weights, gradients, optimizer state of a device "
                                                             "(default: 0)")


def _machine_arguments(parser: argparse.ArgumentParser) -> None:
    machine = parser.add_argument_group("machine")
    machine.add_argument("--meshes", metavar="SHAPES", help="DATAxTENSOR of each stage, as in '(8x1),(4x2)' "
                                                            "(default: one device each)")
    machine.add_argument("--topology", metavar="NAME", help="such as tsubame4, or a file; as many hosts as needed")
    machine.add_argument("--duplex", choices=["on", "off"],
                         help="for a program: whether a mesh sends while it receives; off for XLA on CPU (default: on)")
    machine.add_argument("--times", metavar="FILE", help="for a program: measured seconds as JSON, by fragment and "
                                                         "transfer, instead of the cost model's")
    machine.add_argument("--transfer", default="auto", metavar="STRATEGY",
                         help="broadcast, send-recv, all-gather, global-all-gather, auto (the fastest), or signal: one "
                              "byte, an upper bound on the gain (default: auto)")
    machine.add_argument("--comm-shift", choices=["on", "off"], default="off",
                         help="whether gradients are reduced in the update, or inside the last backward pass (default: "
                              "off)")
    machine.add_argument("--overlap", choices=["on", "off"], default="on",
                         help="whether transfers run concurrently with the computation, or block (default: on)")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite pipeline``."""
    from hlorewrite.errors import UsageError, did_you_mean

    if args.action not in ACTIONS:
        raise UsageError(f'unknown action "{args.action}"', hint=did_you_mean(args.action, ACTIONS))
    for flag, value in (("--times", args.times), ("--duplex", args.duplex)):
        if value and not args.program:
            raise UsageError(f"{flag} applies to a program, but none is named",
                             hint="pass its file, or add --fwd and --bwd")
    if args.action == "schedules":
        if args.program:
            raise UsageError("the list of schedules takes no program", hint="drop it")
        return list_schedules(args.json)
    if args.action == "search":
        from hlorewrite.pipelines.cli.search import run_search
        return run_search(args)
    for flag, value in (("--target", args.target), ("--also", args.also), ("--plot", args.plot)):
        if value:
            raise UsageError(f"{flag} is of search", hint="drop it, or write hlorewrite pipeline search STEP")
    if args.search_s is not None:  # of any other action it is the limit that ends the process
        from hlorewrite.cli.process import set_limits
        set_limits(args.search_s, args.memory_limit)
    if args.action == "run":
        from hlorewrite.pipelines.cli.run import run_program
        return run_program(args)
    from hlorewrite.util.progress import progress
    with progress("simulating a step") as step:
        simulation = simulated(args)
        step("writing the outputs")
        write_files(simulation, args)
    if args.json:
        print(json.dumps(simulation.as_dict(), indent=2))
        return 0
    print(summary(simulation))
    if args.topology:
        print(end=too_large(simulation, args.topology))
    return 0


def write_files(simulation: Simulation, args: argparse.Namespace) -> None:
    """Writes the chart and the trace, if requested."""
    if args.gantt:
        from hlorewrite.cost.training.plots import save
        from hlorewrite.pipelines.simulate.pictures import draw_gantt
        save(draw_gantt(simulation), args.gantt)
    if args.trace:
        write_step(simulation, args)


def write_step(simulation: Simulation, args: argparse.Namespace) -> None:
    """Writes the step as one JSON file, or next to what a trace directory already contains."""
    from hlorewrite.passmanager.trace import format as form
    from hlorewrite.pipelines.simulate.pictures import trace_content, write_trace

    if not form.is_directory_name(args.trace):
        write_trace(simulation, args.trace)
        return
    folder = form.make_folder(args.trace)
    if form.read_manifest(folder) is None:
        made = form.manifest("pipeline simulate", simulation.schedule.name, topology=args.topology or "")
        form.write_json(folder / form.MANIFEST, made | {"complete": True})
    form.write_json(folder / form.TIMELINE, trace_content(simulation))
    form.write_json(folder / form.SIMULATION, simulation.as_dict())


def too_large(simulation: Simulation, spec: str) -> str:
    """A line that names the stages whose peak does not fit on a GPU of the topology; empty when all fit."""
    from hlorewrite.cost import topology
    from hlorewrite.util.sizes import format_bytes

    cluster = topology(spec)
    over = [str(stage) for stage, peak in enumerate(simulation.peak_bytes) if peak > cluster.memory_bytes]
    if not over:
        return ""
    return (f"  does not fit: a GPU of {cluster.name} has {format_bytes(cluster.memory_bytes)}, less than stage"
            f"{'s' if len(over) > 1 else ''} {', '.join(over)} need{'s' if len(over) == 1 else ''}\n")


def simulated(args: argparse.Namespace) -> Simulation:
    """The simulation the flags describe."""
    from hlorewrite.cost import topology
    from hlorewrite.errors import UsageError
    from hlorewrite.pipelines.simulate import describe, parse_meshes, simulate

    if args.program:
        from hlorewrite.pipelines.cli.program import simulated_program
        return simulated_program(args)
    meshes = parse_meshes(args.meshes) if args.meshes else None
    schedule = chosen_schedule(args, len(meshes) if meshes else None)
    if meshes and len(meshes) != schedule.meshes:
        raise UsageError(f"{len(meshes)} meshes for {schedule.meshes} stages", hint="pass one mesh for each stage")
    description = described(args, meshes or ((1, 1),) * schedule.meshes)
    topo = topology(args.topology) if args.topology else None
    moving = any(description.act_bytes) or any(description.grad_bytes)
    if topo is None and moving and (schedule.meshes > 1 or meshes):
        raise UsageError("without a topology, the time of these bytes is unknown",
                         hint="add --topology, such as h200 or tsubame4, or drop --act-bytes and --grad-bytes")
    if topo and ":" in args.topology and topo.gpus < (needed := sum(data * tensor for data, tensor in
                                                                   description.meshes)):
        raise UsageError(f"the meshes need {needed} GPUs, but {topo.spec} has {topo.gpus}",
                         hint=f"pass {topo.name} alone for as many hosts as needed")
    cost = describe(description, schedule, topo, args.transfer)
    return simulate(schedule, cost, comm_shift=args.comm_shift == "on", overlap=args.overlap == "on")


def chosen_schedule(args: argparse.Namespace, meshes: int | None) -> Schedule:
    """The schedule the flags name, checked."""
    from hlorewrite.errors import UsageError
    from hlorewrite.pipelines.schedules import check, custom_schedule, make_schedule
    from hlorewrite.util.read import read_text

    if args.table:
        if args.schedule not in (None, "custom"):
            raise UsageError("--table and --schedule cannot be used together", hint="pass one of them")
        schedule = custom_schedule(read_text(args.table), where=args.table)
        for flag, asked, actual in (("--stages", args.stages, schedule.meshes),
                                    ("--microbatches", args.microbatches, schedule.microbatches)):
            if asked is not None and asked != actual:
                raise UsageError(f"{flag} {asked}, but the table has {actual}", location=args.table,
                                 hint=f"drop {flag} or change the table")
        return check(schedule, args.max_live)
    if args.schedule == "custom":
        raise UsageError("a custom schedule needs its table", hint="add --table FILE")
    stages = meshes if args.stages is None else args.stages
    if stages is None:
        raise UsageError("the number of stages is missing", hint="add --stages N or --meshes")
    if args.microbatches is None:
        raise UsageError("the number of micro-batches is missing", hint="add --microbatches M")
    schedule = make_schedule(args.schedule or "1f1b", stages, args.microbatches, args.chunks)
    return schedule if args.max_live is None else check(schedule, args.max_live)


def described(args: argparse.Namespace, meshes: tuple[tuple[int, int], ...]) -> Description:
    """Sizes and times the flags give."""
    from hlorewrite.errors import UsageError
    from hlorewrite.pipelines.simulate import Description
    from hlorewrite.util.sizes import parse_bytes, parse_seconds

    if args.fwd is None:
        raise UsageError("the time of a forward pass is missing", hint="add --fwd, such as 1ms")
    count = len(meshes)
    forward = per_stage("--fwd", args.fwd, count, parse_seconds)
    backward = per_stage("--bwd", args.bwd, count, parse_seconds) if args.bwd else tuple(2 * each for each in forward)
    return Description(
        meshes, forward, backward,
        act_bytes=per_stage("--act-bytes", args.act_bytes or "0", count, parse_bytes),
        grad_bytes=per_stage("--grad-bytes", args.grad_bytes or "0", count, parse_bytes),
        live_bytes=per_stage("--live-bytes", args.live_bytes, count, parse_bytes) if args.live_bytes else None,
        static_bytes=per_stage("--static-bytes", args.static_bytes, count, parse_bytes) if args.static_bytes else None,
        update_s=per_stage("--update", args.update, count, parse_seconds) if args.update else None,
        weight_gradient_s=per_stage("--bwd-weight", args.bwd_weight, count, parse_seconds) if args.bwd_weight else None)


def per_stage(flag: str, text: str, count: int, parse: Callable[[str], Value]) -> tuple[Value, ...]:
    """One value for all stages, or one for each."""
    from hlorewrite.errors import UsageError

    values: list[Value] = []
    for stage, part in enumerate(text.split(",")):
        try:
            values.append(parse(part))
        except UsageError as error:
            where = flag if "," not in text else f"{flag}, stage {stage}"
            raise UsageError(error.what, location=where, hint=error.hint) from None
    if len(values) == 1:
        return (values[0],) * count
    if len(values) != count:
        raise UsageError(f"{len(values)} values for {count} stages", location=flag,
                         hint="pass one value, or one for each stage")
    return tuple(values)


def summary(simulation: Simulation) -> str:
    """The figures as text."""
    from hlorewrite.pipelines.schedules import peak_live
    from hlorewrite.util.sizes import format_bytes, format_seconds
    from hlorewrite.util.tables import table

    schedule = simulation.schedule
    parts = f" of {schedule.stages // schedule.meshes} chunks" if schedule.stages > schedule.meshes else ""
    lines = [f"{schedule.name}, {schedule.meshes} stages{parts}, {schedule.microbatches} micro-batches, Comm-Shift "
             f"{'on' if simulation.comm_shift else 'off'}, transfers "
             f"{'overlapped' if simulation.overlap else 'blocking'}",
             f"  iteration time         {format_seconds(simulation.iteration_time_s)}",
             f"  period without barrier {format_seconds(simulation.period_s)}",
             f"  bubble                 {simulation.bubble_ratio:.1%} of "
             f"{format_seconds(simulation.free_communication_s)} with free communication",
             f"  exposed communication  {format_seconds(simulation.exposed_communication_s)} of "
             f"{format_seconds(simulation.communication_s)} in total",
             ""]
    rows = [["  stage", "compute", "bubble", "exposed", "alive", "peak memory"]]
    for stage, (compute, bubble, alive, peak) in enumerate(zip(
            simulation.compute_s, simulation.bubble_s, peak_live(schedule), simulation.peak_bytes, strict=True)):
        rows.append([f"  {stage}", format_seconds(compute), format_seconds(max(bubble, 0.0)),
                     format_seconds(simulation.exposed_communication_s), str(alive), format_bytes(peak)])
    return "\n".join([*lines, *table(rows, "<>>>>>", widths=(9,))])


def list_schedules(as_json: bool) -> int:
    """Prints all schedules."""
    from hlorewrite.pipelines.schedules import SCHEDULES, make_schedule, peak_live

    rows = []
    for name in SCHEDULES:
        schedule = make_schedule(name, 4, 8)
        rows.append({"name": name, "chunks": schedule.stages // 4, "peak_live_of_4_stages_8_microbatches":
                     peak_live(schedule)})
    if as_json:
        print(json.dumps(rows, indent=2))
        return 0
    print("micro-batches alive on 4 stages, of 8:")
    for row in rows:
        print(f"  {row['name']:<18}{row['chunks']} chunk{'s' if row['chunks'] > 1 else ' '}  "
              f"{', '.join(map(str, row['peak_live_of_4_stages_8_microbatches']))}")
    return 0
