"""``hlorewrite pipeline simulate PROGRAM.mlir``: the costs come from the program itself."""

from __future__ import annotations

import argparse
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlorewrite.ir.module import Module
    from hlorewrite.pipelines.mpmd.program import Program
    from hlorewrite.pipelines.schedules import Schedule
    from hlorewrite.pipelines.simulate import Simulation
    from hlorewrite.pipelines.simulate.program import ProgramCost

_DESCRIBED = ("stages", "chunks", "fwd", "bwd", "bwd_weight", "update", "act_bytes", "grad_bytes", "live_bytes",
              "static_bytes", "meshes")


def simulated_program(args: argparse.Namespace) -> Simulation:
    """The simulation of a program file.

    Args:
      args: the command line.

    Returns:
      The simulation.

    Raises:
      HlorewriteError: a flag does not apply to a program, the file is not a program, or the schedule does not fit it.
    """
    from hlorewrite.errors import InputError, UsageError
    from hlorewrite.ir.load import load
    from hlorewrite.passmanager.programs import is_program
    from hlorewrite.pipelines.mpmd.program import read_program
    from hlorewrite.pipelines.simulate.program import simulate_program

    for name in _DESCRIBED:
        if getattr(args, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} describes a pipeline, and {args.program} is one already",
                             hint="drop the flag; --times FILE.json gives measured times")
    measured = read_times(args.times) if args.times else None
    module = load(args.program)
    if not is_program(module):
        raise InputError("the module is not a program of several meshes", location=args.program,
                         hint="make one with the pass split-stages, or describe the pipeline with flags")
    module = prepared(module, args.comm_shift == "on", measured)
    program = read_program(module)
    schedule = chosen(args, program)
    cost = program_cost(args, module, program, measured)
    from hlorewrite.pipelines.simulate.program_times import reductions_in_loop
    moved = not needs_partitioner(module) and not reductions_in_loop(module, program)
    simulation = simulate_program(program, schedule, cost, overlap=args.overlap == "on", duplex=args.duplex != "off",
                                  comm_shift=args.comm_shift == "on" or moved)
    if not math.isfinite(simulation.iteration_time_s) or simulation.iteration_time_s <= 0:
        raise InputError("the program takes no time: it computes nothing that the cost model counts",
                         location=args.program, hint="pass measured times with --times FILE.json")
    return simulation


def prepared(module: Module, comm_shift: bool, measured: dict[str, dict[str, float]] | None) -> Module:
    """The program with its collectives explicit, unless all times are measured; moved if requested."""
    from hlorewrite.passmanager.base import PassContext
    from hlorewrite.passmanager.manager import run_passes
    from hlorewrite.passmanager.spec import parse_pipeline
    from hlorewrite.pipelines.mpmd.program import FragmentCall, read_program

    calls = [step for step in read_program(module).steps if isinstance(step, FragmentCall)]
    known = measured is not None and all(step.callee in measured["fragments"] for step in calls)
    steps = ["expose-collectives"] if (comm_shift or not known) and needs_partitioner(module) else []
    steps += ["comm-shift"] if comm_shift else []
    if steps:
        run_passes(module, parse_pipeline(",".join(steps)), PassContext())
    return module


def needs_partitioner(module: Module) -> bool:
    """Whether a fragment is in the global view on several devices."""
    from hlorewrite.ir.view import View
    from hlorewrite.pipelines.mpmd.mesh_view import body_of, local_mesh
    from hlorewrite.pipelines.mpmd.program import FragmentCall, read_program

    program, view = read_program(module), View(module)
    return any(body_of(view.functions[step.callee], local_mesh(view, step.mesh, program.meshes[step.mesh].axes)) is None
               for step in program.steps if isinstance(step, FragmentCall))


def chosen(args: argparse.Namespace, program: Program) -> Schedule:
    """The schedule the flags name, or the program's own, checked against the program."""
    from hlorewrite.errors import InputError, UsageError
    from hlorewrite.pipelines.actions.fit import schedule_for
    from hlorewrite.pipelines.schedules import check, custom_schedule

    if args.microbatches is not None and args.microbatches != program.iterations:
        raise UsageError(f"--microbatches {args.microbatches}, but the program has {program.iterations}",
                         location=args.program, hint="drop the flag; the number is part of the program")
    if args.table:
        from hlorewrite.util.read import read_text
        if args.schedule not in (None, "custom"):
            raise UsageError("--table and --schedule cannot be used together", hint="pass one of them")
        schedule = schedule_for(program, custom_schedule(read_text(args.table), where=args.table))
    else:
        if args.schedule == "custom":
            raise UsageError("a custom schedule needs its table", hint="add --table FILE")
        schedule = schedule_for(program, args.schedule)
    if schedule is None:
        raise InputError("the program has no loop over micro-batches", location=args.program,
                         hint="simulate a program that split-stages made")
    return schedule if args.max_live is None else check(schedule, args.max_live)


def program_cost(args: argparse.Namespace, module: Module, program: Program,
                 measured: dict[str, dict[str, float]] | None) -> ProgramCost:
    """Times of fragments and transfers: measured ones if there are any, otherwise the cost model's."""
    from hlorewrite.cost import topology
    from hlorewrite.errors import UsageError, did_you_mean
    from hlorewrite.pipelines.mpmd.program import FragmentCall, Transfer
    from hlorewrite.pipelines.simulate.program import FragmentTime, ProgramCost
    from hlorewrite.pipelines.simulate.program_times import cards_of, fragment_times, sized_for, transfer_seconds

    callees = [step.callee for step in program.steps if isinstance(step, FragmentCall)]
    positions = [position for position, step in enumerate(program.steps) if isinstance(step, Transfer)]
    names = {f"transfer {number}": position for number, position in enumerate(positions)}
    times = measured or {"fragments": {}, "transfers": {}}
    for kind, known in (("fragments", callees), ("transfers", list(names))):
        for name in times[kind]:
            if name not in known:
                raise UsageError(f'the program has no {kind[:-1]} "{name}"', location=args.times,
                                 hint=did_you_mean(name, known))
    fragments = {name: FragmentTime(seconds) for name, seconds in times["fragments"].items()}
    cards = {}
    transfers = {names[name]: seconds for name, seconds in times["transfers"].items()}
    missing = [name for name in callees if name not in fragments]
    if args.topology or missing or len(transfers) < len(positions):
        if not args.topology:
            what = f"@{missing[0]} takes" if missing else "its transfers take"
            raise UsageError(f"without a topology it is not known how long {what}",
                             hint="add --topology, such as h200 or tsubame4, or all times with --times FILE.json")
        topo = sized_for(program, topology(args.topology), args.topology)
        modelled = fragment_times(module, program, topo)
        fragments = modelled | {name: FragmentTime.split(time.compute_s, modelled[name].collective_s)
                                for name, time in fragments.items()}
        transfers = transfer_seconds(program, topo, args.transfer) | transfers
        cards = cards_of(program, topo)
    return ProgramCost(fragments, transfers, cards)


def read_times(path: str) -> dict[str, dict[str, float]]:
    """Measured times from a file.

    Args:
      path: JSON: ``{"fragments": {name: seconds}, "transfers": {"transfer 0": seconds}}``, transfers numbered in the
        order of the program's text; either may be left out.

    Returns:
      The same, with both parts.

    Raises:
      InputError: the file has another form.
    """
    from hlorewrite.errors import InputError
    from hlorewrite.timeline.measured import MOST_SECONDS
    from hlorewrite.util.read import read_json, read_text

    expected = '{"fragments": {"forward_0": 0.001}, "transfers": {"transfer 0": 0.0001}}'
    try:
        content: Any = read_json(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON ({error.msg})", location=f"{path}:{error.lineno}:{error.colno}",
                         hint=f"write {expected}") from None
    except ValueError as error:
        raise InputError(f"cannot be read ({error})", location=path, hint=f"write {expected}") from None
    parts = content if isinstance(content, dict) else {}
    made: dict[str, dict[str, float]] = {}
    for kind in ("fragments", "transfers"):
        rows = parts.get(kind, {})
        if not isinstance(content, dict) or not isinstance(rows, dict) or not all(
                isinstance(each, int | float) and not isinstance(each, bool) and 0 <= each <= MOST_SECONDS
                for each in rows.values()):
            raise InputError(f'its "{kind}" do not map names to seconds', location=path, hint=f"write {expected}")
        made[kind] = {name: float(seconds) for name, seconds in rows.items()}
    return made
