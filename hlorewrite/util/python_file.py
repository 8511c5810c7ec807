"""Imports a Python file of the user, and says in one line where it fails."""

import hashlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from hlorewrite.errors import HlorewriteError, InputError, UsageError

_DIGEST = "_hlorewrite_digest"


def import_file(path: str | os.PathLike[str]) -> ModuleType:
    """Runs a Python file as a module. A file that was imported already is not run again until its content changes.

    Args:
      path: the file. Name only files that you trust: their code runs.

    Returns:
      The module.

    Raises:
      InputError: the file is missing or cannot be read, has a syntax error, or raises; with its line.
      UsageError: it registers a name that is taken.
    """
    shown = os.fspath(path)
    real = os.path.realpath(shown)
    content = _content(shown)
    digest, name = hashlib.sha256(content).hexdigest(), f"file {real}"
    known = sys.modules.get(name)
    if known is not None and getattr(known, _DIGEST, "") == digest:
        return known
    spec = importlib.util.spec_from_loader(name, loader=None, origin=real)
    assert spec is not None
    made = importlib.util.module_from_spec(spec)
    made.__file__ = real
    setattr(made, _DIGEST, digest)
    sys.modules[name] = made  # dataclasses look their module up there
    try:
        exec(compile(content, real, "exec", dont_inherit=True), vars(made))
    except BaseException as error:
        if known is None:
            del sys.modules[name]
        else:
            sys.modules[name] = known
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _failure(error, shown, real) from error
    return made


def _content(shown: str) -> bytes:
    try:
        return Path(shown).read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", location=shown, hint="correct the path") from None
    except IsADirectoryError:
        raise InputError("is a directory", location=shown, hint="name a Python file in it") from None
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot be read ({reason})", location=shown, hint="check its permissions") from None


def _failure(error: BaseException, shown: str, real: str) -> HlorewriteError:
    """What went wrong, at the last line of the file that was running."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == real]
    where = f"{shown}:{lines[-1]}" if lines else shown
    if isinstance(error, UsageError):  # a name that is taken
        return UsageError(error.what, location=error.location or where, hint=error.hint)
    if isinstance(error, SyntaxError) and error.filename == real:
        column = f":{error.offset}" if error.offset else ""
        return InputError(f"is not Python: {error.msg}", location=f"{shown}:{error.lineno or 1}{column}",
                          hint="correct this line")
    if isinstance(error, SyntaxError | ValueError) and error.__traceback__ is not None \
            and error.__traceback__.tb_next is None:
        return InputError(f"is not Python: {error}", location=shown, hint="name a Python file")
    words = str(error).strip().splitlines()
    what = ("ends the process" if isinstance(error, SystemExit)
            else f"raises {type(error).__name__}" + (f": {words[0]}" if words else ""))
    return InputError(what, location=where, hint="correct this line")
