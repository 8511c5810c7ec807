"""``hlorewrite pipeline search STEP``: meshes, schedules and micro-batches for a step without marks."""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlorewrite.ir.module import Module
    from hlorewrite.pipelines.layout_search import PipelinePoint


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that only ``pipeline search`` takes."""
    from hlorewrite.cli.process import seconds_of

    group = parser.add_argument_group("search", "of the best pipeline for a step without marks (StableHLO with "
                                                "locations); --meshes and --schedule fix these")
    group.add_argument("--target", metavar="NAME:HOSTSxGPUS", help="described GPUs such as h200:4x8; no GPU is needed")
    group.add_argument("--also", metavar="FILE", action="append", default=[],
                       help="the same step with other micro-batches; repeatable")
    group.add_argument("--time-limit", dest="search_s", type=seconds_of, metavar="TIME",
                       help="try no further pipeline after that time, such as 10m, and show those tried; for other "
                            "actions: stop after that time, exit code 1")
    group.add_argument("--plot", metavar="FILE", help="draw step time over memory: PNG or SVG")


def run_search(args: argparse.Namespace) -> int:
    """Tries pipelines and shows them, the fastest first.

    Returns:
      0, or 1 when none can run.

    Raises:
      UsageError: no step or target is named, or the meshes do not fit it.
    """
    from hlorewrite.pipelines.layout_search import pipeline_frontier

    points = _searched(args)
    frontier = pipeline_frontier(points)
    if args.json:
        print(json.dumps({"target": args.target, "points": [_as_json(point, point in frontier, args.target)
                                                            for point in points]}, indent=2))
    else:
        print(_text(points, frontier, args.target))
    if args.plot and frontier:
        from hlorewrite.cost.training.plots import draw_times, save
        save(draw_times([_spot(point) for point in points if point.step_s is not None],
                        [(_spot(point), _name(point)) for point in frontier], of="pipeline",
                        ylabel="simulated step, ms", title=f"on {args.target}"), args.plot)
    return 0 if frontier else 1


def _searched(args: argparse.Namespace) -> list[PipelinePoint]:
    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.cli.step.read_step import described_target
    from hlorewrite.errors import UsageError, did_you_mean
    from hlorewrite.ir.load import parse, read_bytes
    from hlorewrite.passmanager.base import PassContext
    from hlorewrite.passmanager.manager import run_passes
    from hlorewrite.passmanager.spec import parse_pipeline
    from hlorewrite.pipelines.layout_search import SEARCHED, PipelineSearch, read_meshes
    from hlorewrite.pipelines.schedules import SCHEDULES
    from hlorewrite.util.progress import progress

    if not args.program or not args.target:
        raise UsageError("search needs a step and a target",
                         hint="write hlorewrite pipeline search step.mlir --target h200:1x8")
    if args.schedule and args.schedule not in SCHEDULES:
        raise UsageError(f'there is no schedule "{args.schedule}"', hint=did_you_mean(args.schedule, SCHEDULES))
    described_target(args.target)
    ends = None if args.search_s is None else time.monotonic() + args.search_s
    quiet_xla("cpu")
    steps = [parse(read_bytes(name), name=name) for name in (args.program, *args.also)]

    def prepare(module: Module) -> None:
        run_passes(module, parse_pipeline("expose-collectives,comm-shift"), PassContext())

    with progress(f"searching for {args.target}") as step:
        return PipelineSearch(args.target, read_meshes(args.meshes), [args.schedule] if args.schedule else SEARCHED,
                              prepare, lambda: ends is not None and time.monotonic() > ends, step).run(steps)


def _text(points: list[PipelinePoint], frontier: list[PipelinePoint], target: str) -> str:
    from hlorewrite.util.sizes import format_bytes, format_seconds
    from hlorewrite.util.tables import table

    rows = [["", "step", "memory", "micro-batches", "schedule", "meshes", "cuts"]]
    failed = []
    for point in points:
        if point.step_s is None:
            failed.append(f"not possible: {point.schedule} on {point.meshes_text}: {point.failed}")
        else:
            rows.append(["*" if point in frontier else "", format_seconds(point.step_s),
                         format_bytes(point.memory_bytes, 1), str(point.microbatches), point.schedule,
                         point.meshes_text, ",".join(map(str, point.cuts))])
    shown = table(rows, "<>>><<<") if len(rows) > 1 else []
    return "\n".join([*shown, *(point.python(target) for point in frontier), *failed]) or \
        "nothing was tried in that time"


def _as_json(point: PipelinePoint, best: bool, target: str) -> dict[str, Any]:
    return {"step_s": point.step_s, "memory_bytes": point.memory_bytes, "microbatches": point.microbatches,
            "schedule": point.schedule, "meshes": point.meshes, "cuts": point.cuts, "frontier": best,
            "input": point.step, "failed": point.failed,
            "python": point.python(target) if point.step_s is not None else ""}


def _spot(point: PipelinePoint) -> tuple[float, float]:
    return point.memory_bytes / 2**30, (point.step_s or 0.0) * 1e3


def _name(point: PipelinePoint) -> str:
    return f"{point.schedule} {point.meshes_text}"[:40]
