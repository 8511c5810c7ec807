"""``hlorewrite audit``: what a compiled step communicates, what it need not, and what to do about it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from hlorewrite.cli.parser import add_report_argument
from hlorewrite.cli.step.read_step import add_step_arguments, scheduled_step
from hlorewrite.errors import UsageError

if TYPE_CHECKING:
    from hlorewrite.audit.profile.reconcile import ReconciledProfile
    from hlorewrite.timeline.result import StepTimeline
    from hlorewrite.timeline.simulate import ScheduledStep

HELP = "find unnecessary communication in any job's XLA dump or HLO, why XLA left it there, and what to do"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite audit``."""
    add_step_arguments(parser)
    parser.add_argument("--profile", metavar="FILE",
                        help="measured times to compare with predicted ones: *.xplane.pb of jax.profiler, or CSV of "
                             "nsys stats (cuda_gpu_kern_sum, cuda_gpu_trace)")
    parser.add_argument("-O", dest="passes", metavar="NAME", default="auto",
                        help="what to try on the program before optimisations, when a dump contains it: all ways to "
                             "compile it (auto, the default), a named pipeline or its text")
    add_report_argument(parser)
    parser.add_argument("--no-rewrite", action="store_true", help="read the schedule alone, which is faster")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-",
                        help="write one JSON object there; - is standard output")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite audit``."""
    from dataclasses import replace

    from hlorewrite.audit.step_audit import audit_step
    from hlorewrite.audit.text import audit_text
    from hlorewrite.util.progress import progress
    from hlorewrite.util.write import write_output

    source, step = scheduled_step(args)
    dump = source.dump
    if args.report and args.no_rewrite:
        raise UsageError("--report and --no-rewrite cannot be used together", hint="leave one of them out")
    if args.report and (dump is None or not dump.partitioned):
        raise UsageError("--report needs the program before optimisations, which the input does not contain",
                         hint="name the folder of a dump")
    audit = audit_step(step, source.name, dump.options if dump else None)
    if dump is not None and dump.partitioned and not args.no_rewrite:
        from hlorewrite.jaxbridge.choose.dumped import rewritten_dump
        with progress(f"trying {args.passes} for {args.target}"):
            made, report = rewritten_dump(dump.partitioned, source.name, args.target, args.topology or args.target,
                                          args.passes)
        audit = replace(audit, rewritten=made)
        if args.report:
            from hlorewrite.jaxbridge.hook.records import CompiledStep
            from hlorewrite.jaxbridge.hook.report_page import steps_report
            steps_report([CompiledStep.decided(source.name, report)], args.passes, audit=True).write(args.report)
    if args.profile:
        audit = replace(audit, profile=_reconciled(args.profile, audit.timeline, step))
    if args.json:
        write_output(args.json, json.dumps(audit.as_json(), indent=2).encode() + b"\n")
    if args.json != "-":
        print(audit_text(audit))
    return 0


def _reconciled(path: str, timeline: StepTimeline, step: ScheduledStep) -> ReconciledProfile:
    from hlorewrite.audit.profile.nsys import read_nsys
    from hlorewrite.audit.profile.reconcile import reconcile
    from hlorewrite.audit.profile.xplane import read_xplane
    from hlorewrite.ir.load import read_bytes

    content = read_bytes(path)
    read = read_xplane if path.endswith(".pb") else read_nsys
    return reconcile(read(content, path), timeline, step.program.entry)
