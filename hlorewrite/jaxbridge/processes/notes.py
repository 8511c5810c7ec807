"""The lines that processes of a distributed program print about each other, and how one ends at once."""

import os
import sys
from collections.abc import Callable

from hlorewrite.errors import HlorewriteError


def print_note(sentence: str) -> None:
    """Prints one line on stderr; the process continues."""
    print(f"hlorewrite: note: {sentence}", file=sys.stderr, flush=True)


def one_line(error: BaseException) -> str:
    """An error in one line, with its type if it is not an error of the project."""
    words = str(error).strip().splitlines()
    if isinstance(error, HlorewriteError):
        return words[0]
    return type(error).__name__ + (f": {words[0]}" if words else "")


def end_process(sentence: str, before_exit: Callable[[], None] | None = None) -> None:
    """Prints one line and ends the process with exit code 1, whatever its threads wait for.

    Args:
      sentence: the line.
      before_exit: called between the two.
    """
    sys.stdout.flush()
    print(f"hlorewrite: error: {sentence}", file=sys.stderr, flush=True)
    if before_exit:
        before_exit()
    os._exit(1)


def words_of_stages(stages: list[int]) -> str:
    """Names of the stages of a process, for errors.

    Example:
      >>> words_of_stages([1]), words_of_stages([0, 3]), words_of_stages([])
      ('stage 1', 'stages 0, 3', 'no stage')
    """
    if not stages:
        return "no stage"
    return f"stage{'s' if len(stages) > 1 else ''} {', '.join(map(str, stages))}"
