"""``hlorewrite audit``: what a compiled step communicates, what it need not, and what to do about it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from hlorewrite.cli.parser import add_report_argument
from hlorewrite.cli.step.read_step import add_step_arguments, scheduled_step
from hlorewrite.errors import UsageError

if TYPE_CHECKING:
    from hlorewrite.audit.reconcile import ReconciledProfile
    from hlorewrite.audit.step_audit import AuditedDecision
    from hlorewrite.cli.step.read_step import StepInput
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
                        help="what to try on the module, or on the program before optimisations that a dump contains: "
                             "all ways to compile it (auto, the default), a named pipeline or its text")
    add_report_argument(parser)
    parser.add_argument("--no-rewrite", action="store_true", help="read the schedule alone, which is faster")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-",
                        help="write one JSON object there; - is standard output")


def run(args: argparse.Namespace) -> int:
    """Runs ``hlorewrite audit``."""
    from dataclasses import replace

    from hlorewrite.audit.step_audit import audit_step, audit_text
    from hlorewrite.util.write import write_output

    source, step = scheduled_step(args)
    if args.report and args.no_rewrite:
        raise UsageError("--report and --no-rewrite cannot be used together", hint="leave one of them out")
    if args.report and not _decidable(source):
        raise UsageError("--report needs the program before optimisations, which the input does not contain",
                         hint="name the folder of a dump, or a module to compile")
    audit = audit_step(step, source.name, source.dump.options if source.dump else None)
    if _decidable(source) and not args.no_rewrite:
        audit = replace(audit, rewritten=_decision(args, source))
    if args.profile:
        audit = replace(audit, profile=_reconciled(args.profile, audit.timeline, step))
    if args.json:
        write_output(args.json, json.dumps(audit.as_json(), indent=2).encode() + b"\n")
    if args.json != "-":
        print(audit_text(audit))
    return 0


def _decidable(source: StepInput) -> bool:
    """Whether the input contains a program that can be rewritten."""
    return source.module is not None or bool(source.dump and source.dump.partitioned)


def _decision(args: argparse.Namespace, source: StepInput) -> AuditedDecision:
    """What hlorewrite makes of the step; also as a page, if one was asked for."""
    from hlorewrite.cli.step.compile import parse_flags
    from hlorewrite.jaxbridge.choose.audited import decided_dump, decided_module
    from hlorewrite.util.progress import progress

    cluster = args.topology or args.target
    with progress(f"trying {args.passes} for {args.target}"):
        if source.module is not None:
            made, report = decided_module(source.module, args.target, cluster, args.passes, parse_flags(args.xla_flag))
        else:
            assert source.dump is not None
            made, report = decided_dump(source.dump.partitioned, source.name, args.target, cluster, args.passes)
    if args.report:
        from hlorewrite.jaxbridge.hook.records import CompiledStep, steps_report
        steps_report([CompiledStep.decided(source.name, report)], args.passes, audit=True).write(args.report)
    return made


def _reconciled(path: str, timeline: StepTimeline, step: ScheduledStep) -> ReconciledProfile:
    from hlorewrite.audit.profile import read_nsys, read_xplane
    from hlorewrite.audit.reconcile import reconcile
    from hlorewrite.ir.load import read_bytes

    content = read_bytes(path)
    read = read_xplane if path.endswith(".pb") else read_nsys
    return reconcile(read(content, path), timeline, step.program.entry)
