"""``hlorewrite tune``: tries passes, memory budgets, bucket sizes and XLA flags for a target, and shows what pays."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import TYPE_CHECKING

from hlorewrite.cli.parser import add_report_argument
from hlorewrite.cli.process import seconds_of
from hlorewrite.cli.step.read_step import described_target

if TYPE_CHECKING:
    from hlorewrite.ir.module import Module
    from hlorewrite.tune.choice import TuneCache, TunedStep

HELP = "search over passes, memory budgets, bucket sizes and XLA flags for the fastest predicted step on a target"
_ROUNDS = 30
"""About this many choices are tried; for the progress line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite tune``."""
    parser.add_argument("input", metavar="IN", help="StableHLO module or serialized jax.export; - is standard input")
    parser.add_argument("--target", required=True, metavar="NAME:HOSTSxGPUS",
                        help="described GPUs such as h200:4x8; no GPU is needed")
    parser.add_argument("--memory", metavar="SIZE",
                        help="device memory that a step may use (default: all that is usable)")
    parser.add_argument("--time-limit", dest="search_s", type=seconds_of, metavar="TIME",
                        help="end the search after that time, such as 600s, and show the choices tried so far")
    parser.add_argument("--no-compile", action="store_true",
                        help="do not compile the frontier to the end, and show no compile times")
    parser.add_argument("--cache", metavar="DIR", help="where figures are kept for the next run (default: "
                                                       "hlorewrite/tune in the user's cache folder)")
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-",
                        help="write one JSON object there; - is standard output")
    parser.add_argument("--plan", default="", metavar="FILE",
                        help="write the fastest choice that fits as a plan for hlorewrite opt, exec and optimize; the "
                             "name ends in .plan")
    add_report_argument(parser)
    parser.add_argument("--plot", metavar="FILE", help="draw step time over memory: PNG or SVG")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite tune``; exit code 1 when no choice fits the memory, or none was measured."""
    from hlorewrite.page.run_page import RunReport
    from hlorewrite.tune.text import as_json, tuned_section, tuned_text
    from hlorewrite.util.write import write_file, write_output

    _check_outputs(args)
    tuned, plan = _tuned(args)
    report = RunReport("hlorewrite: the fastest step that was found",
                       (tuned_section(tuned, args.target, args.input),),
                       "Steps are predicted from XLA's own schedule of each choice.",
                       f"{tuned_text(tuned, args.target)}\n", as_json(tuned, args.target))
    if args.json:
        write_output(args.json, json.dumps(report.data, indent=2).encode() + b"\n")
    if args.json != "-":
        print(report.text, end="")
    if args.report:
        report.write(args.report)
    if plan:
        write_file(args.plan, plan.encode())
    if args.plot:
        from hlorewrite.cost.training.plots import save
        from hlorewrite.tune.text import draw_tuned
        save(draw_tuned(tuned, args.target), args.plot)
    return 0 if tuned.best else 1


def _tuned(args: argparse.Namespace) -> tuple[TunedStep, str]:
    """What was found, and the content of a plan file, empty if none is wanted or there is no result."""
    from hlorewrite.cli.parser import quiet_xla
    from hlorewrite.cli.step.read_module import read_module
    from hlorewrite.cli.step.tune_run import TuneRun
    from hlorewrite.cost.report.collectives import looks_like_hlo
    from hlorewrite.ir.load import read_bytes
    from hlorewrite.jaxbridge.baseline.baseline_run import sets_beside
    from hlorewrite.jaxbridge.choose.tune_process import TuneProcess
    from hlorewrite.jaxbridge.xla.partition import hides_collectives
    from hlorewrite.util.progress import progress

    described_target(args.target)
    memory = _memory(args.memory, args.target)
    ends = None if args.search_s is None else time.monotonic() + args.search_s
    content = read_bytes(args.input)
    quiet_xla("cpu")
    module = read_module(content, args.input)
    if looks_like_hlo(content):
        content = module.text().encode()  # what the other process reads, and a plan names
    cache = _cache(args, module)
    with TuneProcess(content, args.input, args.target, ends) as process, \
            progress(f"tuning for {args.target}", _ROUNDS) as step:
        process.check()
        run = TuneRun(process, cache, step, memory=memory, flag_sets=sets_beside(),
                      partitioned=hides_collectives(module), planned=bool(args.plan))
        found = run.search()
        plan = run.plan(found) if args.plan and found.best else ""
        return (found if args.no_compile else run.finished(found)), plan


def _memory(text: str | None, target: str) -> int:
    """What a device may hold, in bytes.

    Raises:
      UsageError: it is not a size with a unit, it is nothing, or it is more than a device of the target has.
    """
    from hlorewrite.cost import topology
    from hlorewrite.cost.cluster.capacity import usable_bytes
    from hlorewrite.errors import UsageError
    from hlorewrite.util.sizes import format_bytes, parse_bytes

    most = int(topology(target).memory_bytes)
    if text is None:
        return usable_bytes(most)
    size = parse_bytes(text)
    if text.strip()[-1:].isdigit():
        raise UsageError(f"--memory {text} has no unit", hint=f"write {text.strip()}GiB, say")
    if not size:
        raise UsageError(f"--memory {text} leaves no memory for the step", hint="write 120GiB, say")
    if size > most:
        raise UsageError(f"--memory {text} is more than one GPU of {target} has ({format_bytes(most)})",
                         hint="pass a smaller size, or leave --memory out")
    return size


def _cache(args: argparse.Namespace, module: Module) -> TuneCache:
    """The cache of the module, target, versions and ``XLA_FLAGS``; it can be written."""
    from pathlib import Path

    from jaxlib import version as jaxlib_version

    from hlorewrite.tune.choice import TuneCache
    from hlorewrite.util.write import user_cache
    from hlorewrite.version import VERSION

    folder = Path(args.cache) if args.cache else user_cache("tune", os.environ)
    parts = (module.text(debug_info=False), args.target, VERSION, jaxlib_version.__version__,
             os.environ.get("XLA_FLAGS", ""))
    return TuneCache(None if args.no_cache else folder, parts)


def _check_outputs(args: argparse.Namespace) -> None:
    """Refuses names of files before the search, not after it.

    Raises:
      UsageError: says which.
    """
    from hlorewrite.errors import UsageError

    if args.plan and not args.plan.endswith(".plan"):
        raise UsageError(f"--plan {args.plan} would be read as a folder of plans", hint="use a name that ends in .plan")
    if args.plot:
        from hlorewrite.cost.training.plots import check_picture
        check_picture(args.plot)
