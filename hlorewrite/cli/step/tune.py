"""``hlorewrite tune``: tries passes, memory budgets, bucket sizes and XLA flags for a target, and shows what pays."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import TYPE_CHECKING

from hlorewrite.cli.process.limits import seconds_of
from hlorewrite.cli.step.read_step import described_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from hlorewrite.jaxbridge.against_xla.tuned import TuneMeasurer
    from hlorewrite.tune.cache import TuneCache
    from hlorewrite.tune.choice import TuneChoice, TunedStep, TunePoint

HELP = "search over passes, memory budgets, bucket sizes and XLA flags for the fastest predicted step on a target"
_ROUNDS = 30
"""About as many choices are tried; for the progress line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite tune``."""
    parser.add_argument("input", metavar="IN", help="StableHLO module or serialized jax.export; - is standard input")
    parser.add_argument("--target", required=True, metavar="NAME:HOSTSxGPUS",
                        help="described GPUs such as h200:4x8; no GPU is needed")
    parser.add_argument("--memory", metavar="SIZE", help="what a device may hold (default: what its description says)")
    parser.add_argument("--time-limit", dest="search_s", type=seconds_of, metavar="TIME",
                        help="begin no choice after that time, such as 10m; what was tried is shown")
    parser.add_argument("--no-compile", action="store_true",
                        help="leave out compilations to the end, which show compile times of the frontier")
    parser.add_argument("--cache", metavar="DIR", help="where figures are kept for the next run (default: "
                                                       "hlorewrite/tune in the user's cache folder)")
    parser.add_argument("--no-cache", action="store_true", help="keep no figures, and use none")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-",
                        help="write one JSON object there; - is standard output")
    parser.add_argument("--plot", metavar="FILE", help="draw step time over memory: PNG or SVG")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite tune``; exit code 1 when no choice fits the memory."""
    from hlorewrite.tune.text import as_json, tuned_text
    from hlorewrite.util.write import write_output

    tuned = _tuned(args)
    if args.json:
        write_output(args.json, json.dumps(as_json(tuned, args.target), indent=2).encode() + b"\n")
    if args.json != "-":
        print(tuned_text(tuned, args.target))
    if args.plot:
        from hlorewrite.cost.training.plots import save
        from hlorewrite.tune.picture import draw_tuned
        save(draw_tuned(tuned, args.target), args.plot)
    return 0 if tuned.best else 1


def _tuned(args: argparse.Namespace) -> TunedStep:
    from pathlib import Path

    from hlorewrite.cli.quiet import quiet_xla
    from hlorewrite.cost import topology
    from hlorewrite.ir.load import parse, read_bytes
    from hlorewrite.tune.cache import TuneCache, default_folder
    from hlorewrite.tune.search import TuneSearch
    from hlorewrite.util.progress import progress
    from hlorewrite.util.sizes import parse_bytes

    described_target(args.target)
    memory = parse_bytes(args.memory) if args.memory else int(topology(args.target).memory_bytes)
    ends = None if args.search_s is None else time.monotonic() + args.search_s
    quiet_xla("cpu")
    from hlorewrite.jaxbridge.against_xla.tuned import TuneMeasurer
    measurer = TuneMeasurer(parse(read_bytes(args.input), name=args.input), args.target)
    folder = Path(args.cache) if args.cache else default_folder(os.environ)
    cache = TuneCache(None if args.no_cache else folder, measurer.parts)

    def over() -> bool:
        return ends is not None and time.monotonic() > ends

    with progress(f"tuning for {args.target}", _ROUNDS) as step:
        def measure(choice: TuneChoice) -> TunePoint:
            step(choice.name)
            return cache.points.get(choice) or cache.add(measurer.measure(choice))

        found = TuneSearch(measure, over, memory, measurer.flag_sets, measurer.partitioned).run()
        if args.no_compile:
            return found
        step("compiling the frontier to the end")
        return _finished(found, measurer, cache, over)


def _finished(found: TunedStep, measurer: TuneMeasurer, cache: TuneCache, over: Callable[[], bool]) -> TunedStep:
    """The frontier and XLA alone compiled to the end, as far as the time allows."""
    from dataclasses import replace

    made = {}
    for point in dict.fromkeys((*found.points[:1], *found.frontier)):
        if point.compile_s is None and not point.failed and not over():
            made[point] = cache.add(measurer.finished(point))
    return replace(found, points=tuple(made.get(point, point) for point in found.points))
