"""``hlorewrite timeline``: simulates the schedule of a compiled step: step time, and how much of it communication adds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlorewrite.cli.parser import add_report_argument
from hlorewrite.cli.step.read_step import add_step_arguments, scheduled_step

if TYPE_CHECKING:
    from hlorewrite.timeline.result import StepTimeline
    from hlorewrite.timeline.simulate import ScheduledStep

HELP = "simulate the schedule of a compiled step: its time, and what communication adds to it, collective by collective"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite timeline``."""
    add_step_arguments(parser)
    parser.add_argument("--vs", metavar="BEFORE", help="compare with this step, of any of these forms")
    parser.add_argument("--slowdown", type=float, action="append", metavar="SHARE",
                        help="compute during a collective takes 1 + SHARE times as long; repeatable (default: 0, and "
                             "the published mean)")
    parser.add_argument("--kernel-times", metavar="FILE",
                        help="measured seconds by kernel, as TOML, JSON or CSV; they replace the model's")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-",
                        help="write one JSON object there; - is standard output")
    parser.add_argument("--perfetto", metavar="FILE", help="write the streams as a trace for ui.perfetto.dev")
    parser.add_argument("-o", "--html", metavar="FILE", help="write a self-contained page that shows the overlap")
    add_report_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite timeline``."""
    slowdowns, known = _slowdowns(args.slowdown), _kernel_times(args.kernel_times)
    other = scheduled_step(argparse.Namespace(**vars(args) | {"input": args.vs}), known) if args.vs else None
    before = (other[0].name, [other[1].at(slowdown) for slowdown in slowdowns]) if other else None
    source, step = scheduled_step(args, known)
    recorded = bool(args.perfetto or args.html)
    at = [step.at(slowdown, record=recorded and slowdown == slowdowns[-1]) for slowdown in slowdowns]
    write(args, (source.name, at), step, before)
    return 0


Simulated = tuple[str, Sequence["StepTimeline"]]
"""The name of an input, and its step at each slowdown."""


def write(args: argparse.Namespace, made: Simulated, step: ScheduledStep, before: Simulated | None = None) -> None:
    """Writes the requested files, and the table unless one of them is standard output."""
    from hlorewrite.page.run_page import RunReport
    from hlorewrite.page.step import step_decision, step_section
    from hlorewrite.timeline.result import timeline_text
    from hlorewrite.timeline.spans import spans, trace_events
    from hlorewrite.util.write import write_output

    name, at = made
    events = trace_events(spans(at[-1].trace, step.program)) if args.perfetto or args.html else []
    if args.perfetto:
        trace = {"displayTimeUnit": "ms", "traceEvents": events}
        write_output(args.perfetto, json.dumps(trace, separators=(",", ":")).encode() + b"\n")
    if args.html:
        from hlorewrite.viewer.step import step_page
        write_output(args.html, step_page(name, at, events))
    decision = step_decision(name, at[-1], (before[0], before[1][-1]) if before else None)
    content = at[-1].as_json() | {"input": name, "decision": decision, "at": [
        {key: one.as_json()[key] for key in ("slowdown", "step_s", "exposed_s", "waited_s")} for one in at]}
    if args.json:
        write_output(args.json, json.dumps(content, indent=2).encode() + b"\n")
    text = "\n\n".join(timeline_text(*each) for each in (before, made) if each)
    if "-" not in (args.perfetto, args.html, args.json):
        print(text)
    if args.report:
        slower = f"Compute during a collective is {at[-1].slowdown:.0%} slower."
        RunReport("hlorewrite: a step, simulated", (step_section(name, at[-1], decision),),
                  f"Simulated from XLA's own schedule. {slower}", f"{text}\n", content).write(args.report)


def _slowdowns(given: list[float] | None) -> list[float]:
    from hlorewrite.cost.kernels.rates import timeline_constants
    from hlorewrite.errors import UsageError

    wrong = next((share for share in given or [] if not 0 <= share < 100), None)
    if wrong is not None:
        raise UsageError(f"--slowdown {wrong:g} is not a share", hint="write 0.2 for 20 %")
    return given or [0.0, float(timeline_constants()["overlap_slowdown"])]


def _kernel_times(path: str | None) -> dict[str, float]:
    from hlorewrite.ir.load import read_bytes
    from hlorewrite.timeline.measured import read_kernel_times

    return read_kernel_times(read_bytes(path), path) if path else {}
