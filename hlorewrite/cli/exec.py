"""``hlorewrite exec``: runs a training program unedited, and rewrites what it jits."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from typing import TYPE_CHECKING

from hlorewrite.cli.parser import add_frame_arguments, add_load_argument, add_report_argument, add_step_flag
from hlorewrite.errors import UsageError
from hlorewrite.util.frames import Frames

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.step.options import StepOptions

HELP = "run a program unedited, rewriting the communication of every jitted function"
_FLAGS = ("on_error", "protect", "trace", "keep", "timeout_s", "topology", "memory_budget", "plan", "on_mismatch",
          "audit")
"""Options whose flags are the same as in ``StepOptions``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``hlorewrite exec``."""
    parser.add_argument("-O", dest="passes", metavar="NAME", type=_named,
                        help="auto, the default: the best of all ways to compile each step; or a named pipeline")
    parser.add_argument("--pass", "--pass-pipeline", dest="passes", metavar="PIPELINE", help="run these passes instead")
    add_load_argument(parser)
    parser.add_argument("--natives", action="append", default=[], metavar="MODULE",
                        help="import a module, or a .py file, that registers natives for rule files; repeatable")
    add_step_flag(parser, "match", action="append")
    add_report_argument(parser)
    parser.add_argument("--capture", default="", metavar="FILE",
                        help="rewrite nothing: write the first module that communicates, and that --match names, to "
                             "FILE, and end the program before XLA compiles it; text if FILE ends in .mlir, otherwise "
                             "bytecode")
    add_frame_arguments(parser)
    for name in _FLAGS:
        add_step_flag(parser, name)
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --: the program and its arguments")


def run(args: argparse.Namespace) -> int:
    """Becomes the program; returns only through an error.

    Raises:
      UsageError: an unknown pass, topology or program, or options that cannot be used together.
    """
    from hlorewrite.jaxbridge.hook.exec_run import ExecRun
    from hlorewrite.passmanager.load_file import load_files
    from hlorewrite.rules.register import load_natives

    loads = tuple(os.path.abspath(each) for each in args.load)
    load_files(loads)
    natives = tuple(os.path.abspath(each) if each.endswith(".py") else each for each in args.natives)
    load_natives(natives)
    options = options_of(args)
    program = shutil.which(args.command[0])
    if program is None:
        raise UsageError(f'there is no program "{args.command[0]}"', hint="write the command after --")
    _warn_of_isolation(args.command)
    report = args.report or ("-" if args.audit else "")
    if report not in ("", "-"):
        report = os.path.abspath(report)
    run_as = ExecRun(options, report, natives, loads, os.getpid(), _capture(args))
    sys.stdout.flush()
    os.execve(program, args.command, run_as.environment(os.environ))


def options_of(args: argparse.Namespace) -> StepOptions:
    """The options that the flags give.

    Raises:
      UsageError: an unknown pass or topology, or options that cannot be used together.
    """
    from hlorewrite.jaxbridge.step.options import EXEC, StepOptions

    given = {name: getattr(args, name) for name in _FLAGS}
    for path in ("plan", "trace"):  # paths that hold wherever the program goes
        given[path] = os.path.abspath(given[path]) if given[path] else None
    frames = Frames(tuple(args.skip_frames), tuple(args.own_frames))
    return StepOptions.of(EXEC, {**given, "passes": args.passes, "match": tuple(args.match or ()) or None,
                                 "frames": frames})


def _capture(args: argparse.Namespace) -> str:
    """The absolute path to capture to; empty without ``--capture``.

    Raises:
      UsageError: the folder does not exist, or an option that has no meaning for a program that ends there.
    """
    if not args.capture:
        return ""
    for name in ("report", "trace", "plan", "audit"):
        if getattr(args, name):
            raise UsageError(f"--capture and --{name} cannot be used together: a captured module is not compiled",
                             hint=f"pass the file to the command that reads it, such as hlorewrite opt --{name}"
                             if name == "report" else f"leave --{name} out")
    path = os.path.abspath(args.capture)
    if not os.path.isdir(os.path.dirname(path)):
        raise UsageError(f"there is no folder {os.path.dirname(args.capture)}", location=args.capture,
                         hint="create it first")
    return path


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
    from hlorewrite.passmanager.named import AUTO, named_pipeline
    if name != AUTO:
        named_pipeline(name)
    return name
