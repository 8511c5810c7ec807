"""``hlorewrite timeline``: the schedule of a compiled step, simulated: step time, and what of it communication adds."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlorewrite.timeline.result import StepTimeline
    from hlorewrite.timeline.simulate import ScheduledStep

HELP = "simulate the schedule of a compiled step: its time, and what communication adds to it, collective by collective"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite timeline``."""
    parser.add_argument("input", metavar="IN",
                        help="StableHLO module or serialized jax.export, which is compiled for the target; optimised "
                             "HLO text; or a folder of --xla_dump_to; - is standard input")
    parser.add_argument("--target", required=True, metavar="NAME:HOSTSxGPUS",
                        help="described GPUs such as h200:4x8; no GPU is needed")
    parser.add_argument("--topology", metavar="NAME:HOSTSxGPUS",
                        help="predict times on it (default: the target), such as mine.toml:4x8")
    parser.add_argument("--module", metavar="NAME", default="", help="which module of a dump")
    parser.add_argument("--slowdown", type=float, action="append", metavar="SHARE",
                        help="compute beside a collective takes 1 + SHARE times as long; repeatable (default: 0, and "
                             "the published mean)")
    parser.add_argument("--kernel-times", metavar="FILE",
                        help="measured seconds by kernel, as TOML, JSON or CSV; they take the place of the model's")
    parser.add_argument("--trips", action="append", default=[], metavar="LOOP=N",
                        help="how often a loop turns whose count XLA lost; repeatable")
    parser.add_argument("--source", metavar="FILE",
                        help="the StableHLO the HLO was compiled from, for lost trip counts")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-",
                        help="write one JSON object there; - is standard output")
    parser.add_argument("--perfetto", metavar="FILE", help="write the streams as a trace for ui.perfetto.dev")
    parser.add_argument("-o", "--html", metavar="FILE", help="write a self-contained page that shows what hides what")
    parser.add_argument("--xla-flag", action="append", default=[], metavar="NAME=VALUE",
                        help="XLA flag for the compilation; repeatable")


@dataclass(frozen=True)
class TimelineInput:
    """What is simulated.

    Attributes:
      name: for messages and headings.
      text: scheduled HLO.
      memory_bytes: of one device, when known.
      line_trips: trip counts of the source module by line.
    """

    name: str
    text: str
    memory_bytes: int | None = None
    line_trips: dict[str, int] = field(default_factory=dict)


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite timeline``."""
    from hlorewrite.cli.quiet import quiet_xla
    from hlorewrite.cost import topology
    from hlorewrite.errors import UsageError

    if args.target.partition(":")[0].lower() in ("cpu", "gpu"):
        raise UsageError(f"--target {args.target} has no cost model", hint="name GPUs such as h200:1x8")
    cluster = topology(args.topology or args.target)
    slowdowns = _slowdowns(args.slowdown)
    trips, measured = _trips(args.trips), _kernel_times(args.kernel_times)
    quiet_xla("cpu")
    source = read_input(args)
    from hlorewrite.timeline.simulate import ScheduledStep
    step = ScheduledStep(source.text, cluster, kernel_times=measured, trips=trips, line_trips=source.line_trips,
                         memory_bytes=source.memory_bytes, name=source.name)
    recorded = bool(args.perfetto or args.html)
    at = [step.at(slowdown, record=recorded and slowdown == slowdowns[-1]) for slowdown in slowdowns]
    write(args, source.name, step, at)
    return 0


def read_input(args: argparse.Namespace) -> TimelineInput:
    """The scheduled HLO of any known input; StableHLO is compiled."""
    from hlorewrite.cost.report.hlo import looks_like_hlo
    from hlorewrite.ir.load import parse, read_bytes
    from hlorewrite.timeline.dumps import dumped_module
    from hlorewrite.timeline.source_trips import line_trips

    known = line_trips(parse(read_bytes(args.source), name=args.source)) if args.source else {}
    if args.input != "-" and os.path.isdir(args.input):
        found = dumped_module(args.input, args.module)
        return TimelineInput(found.name, found.text, found.memory_bytes, known)
    if args.module:
        from hlorewrite.errors import UsageError
        raise UsageError("--module is for a folder of --xla_dump_to", hint="leave it out")
    data = read_bytes(args.input)
    name = "<stdin>" if args.input == "-" else args.input
    if looks_like_hlo(data):
        return TimelineInput(name, data.decode(errors="replace"), None, known)
    return _compiled(args, data, name)


def _compiled(args: argparse.Namespace, data: bytes, name: str) -> TimelineInput:
    """StableHLO, compiled for the target."""
    from hlorewrite.cli.compile import parse_flags
    from hlorewrite.errors import InputError
    from hlorewrite.ir.load import parse
    from hlorewrite.mpmd.program import is_program
    from hlorewrite.timeline.source_trips import line_trips
    from hlorewrite.util.progress import progress

    module = parse(data, name=name)
    if is_program(module):
        raise InputError("is a program of several meshes; the timeline is of one compiled module", location=name,
                         hint="hlorewrite pipeline simulate shows its step")
    from hlorewrite.jaxbridge.xla.compile_for import compile_for, was_rewritten
    from hlorewrite.jaxbridge.xla.target import parse_target
    trips = line_trips(module)
    with progress(f"compiling for {args.target}"):
        made = compile_for(module, parse_target(args.target), protect=was_rewritten(module),
                           xla_flags=parse_flags(args.xla_flag))
    return TimelineInput(name, made.hlo, made.memory.total, trips)


def write(args: argparse.Namespace, name: str, step: ScheduledStep, at: Sequence[StepTimeline]) -> None:
    """Writes what was asked for; the table when nothing goes to standard output."""
    from hlorewrite.timeline.spans import spans, trace_events
    from hlorewrite.timeline.text import timeline_text
    from hlorewrite.util.write import write_output

    events = trace_events(spans(at[-1].trace, step.program)) if args.perfetto or args.html else []
    if args.perfetto:
        trace = {"displayTimeUnit": "ms", "traceEvents": events}
        write_output(args.perfetto, json.dumps(trace, separators=(",", ":")).encode() + b"\n")
    if args.html:
        from hlorewrite.viewer.step import step_page
        write_output(args.html, step_page(name, at, events))
    if args.json:
        content = at[-1].as_json() | {"input": name, "at": [
            {key: one.as_json()[key] for key in ("slowdown", "step_s", "exposed_s", "waited_s")} for one in at]}
        write_output(args.json, json.dumps(content, indent=2).encode() + b"\n")
    if "-" not in (args.perfetto, args.html, args.json):
        print(timeline_text(name, at))


def _slowdowns(given: list[float] | None) -> list[float]:
    from hlorewrite.cost.compute import timeline_constants
    from hlorewrite.errors import UsageError

    wrong = next((share for share in given or [] if not 0 <= share < 100), None)
    if wrong is not None:
        raise UsageError(f"--slowdown {wrong:g} is no share", hint="write 0.2 for 20 %")
    return given or [0.0, float(timeline_constants()["overlap_slowdown"])]


def _trips(given: list[str]) -> dict[str, int]:
    from hlorewrite.errors import UsageError

    counts: dict[str, int] = {}
    for text in given:
        name, _, number = text.partition("=")
        if not name or not number.isdigit():
            raise UsageError(f'--trips "{text}" is not LOOP=N', hint="write while.12=8, say")
        counts[name.lstrip("%")] = int(number)
    return counts


def _kernel_times(path: str | None) -> dict[str, float]:
    from hlorewrite.ir.load import read_bytes
    from hlorewrite.timeline.measured import read_kernel_times

    return read_kernel_times(read_bytes(path), path) if path else {}
