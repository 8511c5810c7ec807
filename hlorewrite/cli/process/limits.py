"""``--time-limit`` and ``--memory-limit``: what a subcommand may use before it is stopped."""

import argparse
import os
import sys
from pathlib import Path

from hlorewrite.errors import UsageError
from hlorewrite.util.sizes import parse_bytes, parse_seconds

MOST_SECONDS = 1e9


def add_limit_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds both flags to a parser, or to those of its actions."""
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in actions:
        for each in dict.fromkeys(action.choices.values()):
            add_limit_arguments(each)
    if actions:
        return
    group = parser.add_argument_group("limits")
    if "--time-limit" not in parser._option_string_actions:  # of a subcommand that ends by itself when the time is over
        group.add_argument("--time-limit", type=seconds_of, metavar="TIME",
                           help="stop after that time, such as 90s; exit code 1")
    group.add_argument("--memory-limit", type=_bytes, metavar="SIZE",
                       help="stop if the process and its children use more memory than that; exit code 1 (Linux)")


def seconds_of(text: str) -> float:
    """The value of ``--time-limit``, in seconds.

    Raises:
      UsageError: it is not a positive duration.
    """
    seconds = parse_seconds(text)
    if not 0 < seconds <= MOST_SECONDS:
        raise UsageError(f"--time-limit {text} is not a positive duration", hint="write 90s, say")
    return seconds


def _bytes(text: str) -> int:
    if sys.platform != "linux":
        raise UsageError("--memory-limit needs Linux, where the memory of a process can be read", hint="leave it out")
    return parse_bytes(text)


def resident_bytes(process: int) -> int:
    """The memory that a process and its descendants hold, in bytes; 0 for one that is gone."""
    total, waiting, page = 0, [process], os.sysconf("SC_PAGE_SIZE")
    # Ends: a process is the child of one other process.
    while waiting:
        folder = Path("/proc") / str(waiting.pop())
        try:
            total += int((folder / "statm").read_text().split()[1]) * page
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ValueError, IndexError):
            continue
    return total
