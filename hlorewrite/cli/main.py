"""``hlorewrite``: finds the subcommand, and turns mistakes into one line and an exit code.

``subcommands.py`` lists the subcommands; only the named subcommand's module is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from hlorewrite.cli.parser import Parser
from hlorewrite.cli.subcommands import available, subcommand
from hlorewrite.errors import TRACEBACK_VARIABLE, HlorewriteError, UsageError, did_you_mean

SUPERVISED = (("opt",), ("report",), ("lint",), ("pipeline", "simulate"))
"""How subcommands begin that hand files to MLIR's parsers and passes and start no process of their own."""


def entry() -> NoReturn:
    """Runs the command line of this process and exits."""
    words = sys.argv[1:]
    if any(tuple(words[:len(each)]) == each for each in SUPERVISED) and not os.environ.get(TRACEBACK_VARIABLE):
        from hlorewrite.cli.supervise import supervised
        sys.exit(supervised(lambda: guarded(words), lambda: _reproduce(words), " ".join(words)))
    sys.exit(guarded(words))


def _reproduce(words: list[str]) -> str:
    if words[0] != "opt":
        return ""
    from hlorewrite.cli.opt.job import reproduce_crash
    return reproduce_crash(words[1:])


def guarded(words: Sequence[str]) -> int:
    """Runs a command line; every error becomes one line on stderr and an exit code.

    Args:
      words: the command line without the program's name.

    Returns:
      0 ok, 1 failed or findings, 2 usage or unreadable input, 3 values differ; 130 when interrupted.
    """
    try:
        code = main(words)
        sys.stdout.flush()
        return code
    except HlorewriteError as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        return _told(str(error), error.exit_code)
    except SystemExit as leave:  # argparse after --help
        return leave.code if isinstance(leave.code, int) else 0
    except KeyboardInterrupt:
        return _told("interrupted", 130)
    except BrokenPipeError:
        # Whoever read our output has left; python would complain once more while closing stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        return _told(_unexpected(error), 1)


def main(words: Sequence[str]) -> int:
    """Runs a command line.

    Args:
      words: the command line without the program's name.

    Returns:
      The exit code.

    Raises:
      HlorewriteError: what went wrong.
    """
    if not words:
        raise UsageError("a subcommand is needed", hint=f"one of: {', '.join(available())}; see `hlorewrite --help`")
    name, rest = words[0], list(words[1:])
    if name in ("--version", "-V"):
        print(version_text())
        return 0
    if name in ("--help", "-h") or (name == "help" and not rest):
        print(overview(), end="")
        return 0
    if name == "help":
        return _help(rest[0])
    if name not in available():
        known = available()
        hint = did_you_mean(name, known)
        raise UsageError(f'unknown {"option" if name.startswith("-") else "subcommand"} "{name}"', hint=hint)
    module = subcommand(name)
    parser = Parser(prog=f"hlorewrite {name}", description=module.HELP, allow_abbrev=False)
    module.add_arguments(parser)
    prepare = getattr(module, "prepare", None)
    if prepare is not None:
        rest = prepare(rest)
    return module.run(parser.parse_args(rest))


def overview() -> str:
    """What ``hlorewrite --help`` prints."""
    lines = ["usage: hlorewrite SUBCOMMAND ...", "", "Rewrites the communication of StableHLO programs.", ""]
    for name in available():
        lines.append(f"  {name:<12}{subcommand(name).HELP}")
    lines += ["  help PASS   Shows what a pass does and its options.", "",
              "`hlorewrite SUBCOMMAND --help` shows the options of one; `hlorewrite --version` the versions."]
    return "\n".join(lines) + "\n"


def version_text() -> str:
    """The versions of hlorewrite and jaxlib, without importing jaxlib."""
    from importlib.metadata import PackageNotFoundError, version

    from hlorewrite.version import VERSION
    try:
        jaxlib = version("jaxlib")
    except PackageNotFoundError:
        jaxlib = "missing"
    return f"hlorewrite {VERSION} (jaxlib {jaxlib})"


def _help(topic: str) -> int:
    from hlorewrite.cli.opt.pass_help import pass_help
    if topic not in available():
        print(pass_help(topic), end="")
        return 0
    from hlorewrite.passmanager.registry import built_in_passes
    if topic in built_in_passes():  # "rules" is a pass and a subcommand
        print(f"The pass:\n\n{pass_help(topic)}\nThe subcommand:\n")
    return main([topic, "--help"])


def _unexpected(error: Exception) -> str:
    traceback = error.__traceback__
    # Ends: a traceback is a finite chain.
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    where = f" in {os.path.basename(traceback.tb_frame.f_code.co_filename)}:{traceback.tb_lineno}" if traceback else ""
    words = str(error).strip().splitlines()
    shown = type(error).__name__ + (f": {words[0]}" if words else "")
    return f"unexpected error ({shown}){where}; set {TRACEBACK_VARIABLE}=1 to see the traceback, and report it"


def _told(text: str, code: int) -> int:
    print(f"hlorewrite: error: {text}", file=sys.stderr)
    return code
