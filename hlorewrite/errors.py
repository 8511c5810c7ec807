"""Errors a user can cause, each one line: where, what, what to do next.

Every error carries its exit code, so the command line needs no separate table: 0 ok, 1 failed or findings, 2 usage or
unreadable input, 3 values differ.
"""

import difflib
from collections.abc import Iterable

TRACEBACK_VARIABLE = "HLOREWRITE_TRACEBACK"
"""Environment variable; when it is set, tracebacks are shown instead of one line."""


class HlorewriteError(Exception):
    """A mistake in the input, reported in one line.

    Args:
      what: the message, without a final full stop.
      location: where, as ``FILE:LINE:COL`` or the user's own source line.
      hint: what to do next.
      excerpt: lines to show below the sentence (the source line and a caret).

    Example:
      >>> print(HlorewriteError("the file is empty", location="a.mlir:1:1", hint="write a module to it"))
      a.mlir:1:1: the file is empty; write a module to it
    """

    exit_code = 1

    def __init__(self, what: str, *, location: str | None = None, hint: str | None = None,
                 excerpt: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.location = location if location != "?" else None  # the op has no source line
        self.hint = hint
        self.excerpt = excerpt

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        after = f"; {self.hint}" if self.hint else ""
        below = f"\n{self.excerpt}" if self.excerpt else ""
        return f"{where}{self.what}{after}{below}"


class UsageError(HlorewriteError):
    """The command or call itself is wrong: an unknown name, an option of the wrong type."""

    exit_code = 2


class InputError(HlorewriteError):
    """A file cannot be read as what it should be."""

    exit_code = 2


class OutputError(HlorewriteError):
    """A result cannot be written to the given path."""


class PassFailed(HlorewriteError):
    """A pass raised, or left a module that does not verify."""


class RuleSyntaxError(HlorewriteError):
    """A rule file cannot be parsed."""

    exit_code = 2


class RuleCheckError(HlorewriteError):
    """A rule file parses but is not valid: an unknown name, a wrong kind or arity."""

    exit_code = 2


class PlanError(HlorewriteError):
    """The requested plan, schedule or topology is impossible."""


class PlanMismatch(InputError):
    """A plan file does not fit this run, or cannot be read as a plan.

    Args:
      what: the message, as in every error; so are ``location`` and ``hint``.
      stops: the program stops, even if other errors would fall back.
    """

    def __init__(self, what: str, *, location: str | None = None, hint: str | None = None, stops: bool = True) -> None:
        super().__init__(what, location=location, hint=hint)
        self.stops = stops


class ValuesDiffer(HlorewriteError):
    """Two programs that should compute the same values do not."""

    exit_code = 3


MOST_NAMES = 20
"""A hint lists no more known names than this."""


def closest(name: str, known: Iterable[str]) -> str:
    """Says which known name is close to an unknown one; empty if none is.

    Example:
      >>> closest("com-shift", ["comm-shift", "inline"]), closest("x", ["comm-shift"])
      ('did you mean "comm-shift"?', '')
    """
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f'did you mean "{close[0]}"?' if close else ""


def did_you_mean(name: str, known: Iterable[str], listed_by: str = "") -> str:
    """Says which known name is close to an unknown one, or lists the known ones; only the closest few of many.

    Args:
      name: what the user wrote.
      known: the names that exist.
      listed_by: the command that lists all of them, named when there are many.

    Returns:
      A hint without a final full stop, fit for ``HlorewriteError(hint=...)``.

    Example:
      >>> did_you_mean("com-shift", ["comm-shift", "inline"])
      'did you mean "comm-shift"?'
    """
    names = sorted(known)
    if hint := closest(name, names):
        return hint
    if len(names) <= MOST_NAMES:
        return f"known: {', '.join(names)}" if names else "none is known"
    nearest = difflib.get_close_matches(name, names, n=3, cutoff=0.0)
    more = f"and {len(names) - len(nearest)} more" + (f", see `{listed_by}`" if listed_by else "")
    return f"known: {', '.join(nearest)} {more}"


class CannotExecute(HlorewriteError):
    """The reference interpreter, or lockstep execution, does not support an op or construct in the module."""

    exit_code = 2
