"""``hlorewrite``: finds the subcommand, and turns mistakes into one line and an exit code.

``subcommands.py`` lists the subcommands; only the named subcommand's module is imported.
"""

import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn, TextIO, cast

from hlorewrite.cli.parser import EXIT_CODES, Parser, add_load_argument
from hlorewrite.cli.process import Terminated, add_limit_arguments, set_limits, silenced, supervised
from hlorewrite.cli.subcommands import available, subcommand
from hlorewrite.errors import TRACEBACK_VARIABLE, HlorewriteError, InputError, UsageError, did_you_mean

UNSUPERVISED = ("exec", "completion")
"""Subcommands that work in this very process: ``exec`` becomes the user's program."""
LONG = ("pipeline", "view", "rules", "estimate", "reshard", "timeline", "audit")
"""Subcommands that can run for long or keep much: there the collector of cycles stays on."""
_LONG_WORD, _SHOWN = re.compile(r"\S{1000,}"), 100
_NO_TEXT = "a name in the module is not UTF-8 text; write the file again"
_UNREADABLE = {
    "str_from_cstr_and_size(): conversion error": _NO_TEXT,  # jaxlib 0.10
    "nanobind::str(): conversion error": _NO_TEXT,  # jaxlib 0.12
    "jaxlib.mlir._mlir_libs._mlir.ir.Location, /) -> ":
        "an attribute in the module has a location, loc(...), as its value, which jaxlib cannot read; "
        "write the file without it",
    "for integer string conversion": "a number has thousands of digits; write a smaller one",
}
"""Messages of jaxlib's bindings, or of Python, about inputs that Python cannot represent -> the message to show."""


def entry() -> NoReturn:
    """Runs the command line of this process and exits."""
    words = sys.argv[1:]
    complete_streams()
    if words and words[0] in available() and words[0] not in UNSUPERVISED:
        sys.exit(supervised(lambda: guarded(words), lambda: _reproduce(words), " ".join(words),
                            short=words[0] not in LONG))
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
    except SystemExit:  # code that was loaded: the parser's own end does not come here
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        return _told("a loaded pass or native called exit; remove that call", 1)
    except KeyboardInterrupt as stopped:
        return _stopped(stopped)
    except BrokenPipeError:
        drop_output()  # the reader of our output has left, as `head` does
        return 1
    except (MemoryError, RecursionError) as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        return _told(_too_large(error), 1)
    except OSError as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        return _told(_system(error), 1)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        for words, sentence in _UNREADABLE.items():
            if words in str(error):
                return _told(sentence, InputError.exit_code)
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
        return _help(rest)
    if name not in available():
        known = available()
        hint = did_you_mean(name, ["--help", "--version"] if name.startswith("-") else known)
        raise UsageError(f'unknown {"option" if name.startswith("-") else "subcommand"} "{name}"', hint=hint)
    module = subcommand(name)
    parser = Parser(prog=f"hlorewrite {name}", description=module.HELP, allow_abbrev=False)
    module.add_arguments(parser)
    prepare = getattr(module, "prepare", None)
    if prepare is not None:
        rest = prepare(rest)
    if name not in UNSUPERVISED:
        add_limit_arguments(parser)
    try:
        args = parser.parse_args(rest)
    except SystemExit as leave:  # after --help
        return leave.code if isinstance(leave.code, int) else 0
    set_limits(getattr(args, "time_limit", None), getattr(args, "memory_limit", None))
    return module.run(args)


def overview() -> str:
    """What ``hlorewrite --help`` prints."""
    lines = ["usage: hlorewrite SUBCOMMAND ...", "", "Rewrites the communication of StableHLO programs.", ""]
    for name in available():
        lines.append(f"  {name:<12}{subcommand(name).HELP}")
    lines += ["  help NAME   show what a pass, a named pipeline (comm, time, auto) or a subcommand does", "",
              "`hlorewrite SUBCOMMAND --help` shows the options of one; `hlorewrite --version` the versions.",
              EXIT_CODES]
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


def _help(words: Sequence[str]) -> int:
    from hlorewrite.cli.opt.pass_help import pass_help, pipeline_help
    from hlorewrite.passmanager.load_file import load_files
    from hlorewrite.passmanager.named import ABOUT
    from hlorewrite.passmanager.registry import all_passes
    parser = Parser(prog="hlorewrite help", description="show what a pass, a pipeline or a subcommand does")
    parser.add_argument("topic", metavar="NAME", help="a pass, a named pipeline or a subcommand")
    add_load_argument(parser)
    try:
        args = parser.parse_args(words)
    except SystemExit as leave:  # after --help
        return leave.code if isinstance(leave.code, int) else 0
    load_files(args.load)
    topic = args.topic
    if topic in ABOUT:
        print(pipeline_help(topic), end="")
        return 0
    if topic not in available():
        passes = [each.name for each in all_passes()]
        if topic not in passes:
            raise UsageError(f'there is no pass, pipeline or subcommand "{topic}"',
                             hint=did_you_mean(topic, [*passes, *ABOUT, *available()], "hlorewrite opt --list-passes"))
        print(pass_help(topic), end="")
        return 0
    from hlorewrite.passmanager.registry import built_in_passes
    if topic in built_in_passes():  # "rules" is a pass and a subcommand
        print(f"The pass:\n\n{pass_help(topic)}\nThe subcommand:\n")
    return main([topic, "--help"])


def _stopped(stopped: KeyboardInterrupt) -> int:
    number = stopped.number if isinstance(stopped, Terminated) else signal.SIGINT
    if silenced():
        return 128 + number
    return _told("interrupted" if number == signal.SIGINT else "terminated", 128 + number)


def _too_large(error: MemoryError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "the input is nested too deeply; nest fewer regions, expressions or tuples in each other"
    return "memory ran out; use a smaller input, or free memory"


def _system(error: OSError) -> str:
    """An error of the system that no place expects; without a file it is one of standard output."""
    if error.filename is None:
        drop_output()
        return (f"cannot write standard output ({os.strerror(error.errno or 0)}); "
                "free space, or write elsewhere with -o FILE")
    return f"{os.fsdecode(error.filename)}: {os.strerror(error.errno or 0)}; check the path and its permissions"


def _unexpected(error: Exception) -> str:
    traceback = error.__traceback__
    # Ends: a traceback is a finite chain.
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    where = f" in {os.path.basename(traceback.tb_frame.f_code.co_filename)}:{traceback.tb_lineno}" if traceback else ""
    words = str(error).strip().splitlines()
    shown = type(error).__name__ + (f": {words[0]}" if words else "")
    return f"unexpected error ({shown}){where}; set {TRACEBACK_VARIABLE}=1 to see the traceback, and report it"


def _shortened(word: re.Match[str]) -> str:
    return f"{word[0][:_SHOWN]}...{word[0][-_SHOWN:]} ({len(word[0])} characters)"


def _told(text: str, code: int) -> int:
    with suppress(OSError):  # standard error may be full or closed too
        print(f"hlorewrite: error: {_LONG_WORD.sub(_shortened, text)}", file=sys.stderr)
    return code


# ---- standard streams that a shell closed, and names that are not UTF-8


def complete_streams() -> None:
    """Opens standard streams that are closed, and makes them print any file name.

    A closed standard output becomes one that cannot be written, so that printing fails instead of being lost, and no
    file that is opened later takes its number. Bytes of file names that are not text are shown as escapes.
    """
    if sys.stdin is None:
        sys.stdin = _opened(0, os.O_RDONLY, "r")
    if sys.stdout is None:
        sys.stdout = _opened(1, os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _opened(2, os.O_WRONLY, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Discards what is still buffered for standard output, so that closing it does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _opened(number: int, flags: int, mode: str) -> TextIO:
    null = os.open(os.devnull, flags)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    return cast(TextIO, open(number, mode, encoding="utf-8", closefd=False))
