"""``hlorewrite exec``: runs a training program unedited, and rewrites what it jits."""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from hlorewrite.cli.parser import add_frame_arguments, add_plan_arguments
from hlorewrite.errors import UsageError
from hlorewrite.util.memory_budget import checked_budget

HELP = "run a program unedited, rewriting the communication of what it jits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite exec``."""
    parser.add_argument("-O", dest="passes", metavar="NAME", type=_named, help="a named pipeline; comm by default")
    parser.add_argument("--pass", "--pass-pipeline", dest="passes", metavar="PIPELINE", help="run these passes instead")
    parser.add_argument("--natives", action="append", default=[], metavar="MODULE",
                        help="import a module, or a .py file, that registers natives for rule files; repeatable")
    parser.add_argument("--match", action="append", default=[], metavar="NAME",
                        help="rewrite functions of this name or glob pattern only; repeatable")
    parser.add_argument("--memory-budget", default=None, metavar="SIZE", type=checked_budget,
                        help="bytes a device may spend on what all passes keep for longer (auto: 80%% of the memory "
                             "of a device of --topology, less arguments and results, less 5%%, less the temporaries of "
                             "the compiled original; default: each pass has its own limit)")
    parser.add_argument("--topology", default="", metavar="NAME", help="the cluster to estimate times for")
    parser.add_argument("--report", default="", metavar="FILE",
                        help="write what was rewritten when the program ends: .html, .json or text; - for stderr")
    parser.add_argument("--audit", action="store_true",
                        help="rewrite nothing; report what could be saved (to standard error without --report)")
    add_frame_arguments(parser)
    parser.add_argument("--keep", choices=("better", "compiled", "always"), default="",
                        help="when a rewritten module is compiled: better (the default) than XLA alone by bytes, calls "
                             "and memory of the schedule; the same after both are compiled to the end; always")
    add_plan_arguments(parser, "DIR_OR_FILE", "keep what was decided for each module in this folder, or in one file "
                       "that ends in .plan; later runs replay it")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --: the program and its arguments")


def run(args: argparse.Namespace) -> int:
    """Becomes the program; returns only through an error.

    Raises:
      UsageError: an unknown pass, topology or program.
    """
    from hlorewrite.jaxbridge.hook.exec_settings import ExecSettings
    from hlorewrite.passmanager.named import PIPELINES
    from hlorewrite.rules.register import load_natives

    natives = tuple(os.path.abspath(each) if each.endswith(".py") else each for each in args.natives)
    load_natives(natives)
    passes = args.passes or "comm"
    if passes not in PIPELINES:  # parsing loads MLIR, which takes longer than all else here
        from hlorewrite.passmanager.spec import parse_pipeline
        parse_pipeline(passes)
    if args.topology:
        from hlorewrite.cost.cluster.topology_file import topology
        topology(args.topology)
    program = shutil.which(args.command[0])
    if program is None:
        raise UsageError(f'there is no program "{args.command[0]}"', hint="write the command after --")
    _warn_of_isolation(args.command)
    report = args.report or ("-" if args.audit else "")
    if report not in ("", "-"):
        report = os.path.abspath(report)
    if args.plan and args.audit:
        raise UsageError("--audit rewrites nothing, so there is no plan to keep", hint="leave out --plan")
    settings = ExecSettings(args.passes or "", tuple(args.match), args.topology, report, args.audit, os.getpid(),
                            tuple(args.skip_frames), tuple(args.own_frames), args.keep, natives,
                            _absolute(args.plan), args.on_mismatch, args.memory_budget)
    sys.stdout.flush()
    os.execve(program, args.command, settings.environment(os.environ))


def _absolute(plan: str) -> str:
    """A path that holds wherever the program goes."""
    return os.path.abspath(plan) if plan else ""


def _warn_of_isolation(command: list[str]) -> None:
    """Says when the command keeps Python from reading its environment."""
    if not os.path.basename(command[0]).startswith("python"):
        return
    for word in command[1:]:
        if not word.startswith("-") or word in ("-m", "-c"):
            return
        if not word.startswith("--") and set(word) & set("EIS"):
            sys.stderr.write(f"hlorewrite exec: python {word} does not load the hook; the program runs unmodified\n")
            return


def _named(name: str) -> str:
    from hlorewrite.passmanager.named import named_pipeline
    named_pipeline(name)
    return name
