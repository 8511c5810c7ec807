"""Profiles of predicted times as files: an XLA option names a profile by its path, and everything else by its text.

A file has the digest of its text as its name, so all processes of a user find the same one, and a compilation cache
tells profiles apart by their paths.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hlorewrite.errors import InputError, OutputError
from hlorewrite.hlo.published_flags import PROFILE, PROFILED, is_profile
from hlorewrite.util.write import user_cache, write_file

Options = dict[str, str | bool | int]
_FOLDER = "latency-profiles"
MOST_KEPT = 256
"""Files in the folder. A decision writes up to five, of which a compilation reads one soon."""


def profile_options(text: str) -> Options:
    """The XLA options of a compilation whose scheduler takes its times from a profile.

    Args:
      text: the profile, as ``timeline.latency_profile`` makes it.

    Raises:
      OutputError: the user's cache folder cannot be written.
    """
    path = user_cache(_FOLDER, os.environ) / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.pbtxt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text() != text:
            _forget_oldest(path.parent)
            write_file(path, text.encode())
    except OSError as error:
        raise OutputError(f"cannot keep a profile ({os.strerror(error.errno or 0)})", location=str(path.parent),
                          hint="set XDG_CACHE_HOME to a writable folder") from None
    return {**PROFILED, PROFILE: str(path)}


def _forget_oldest(folder: Path) -> None:
    """Removes the oldest files of a folder, so that one more fits; another process may be doing the same."""
    with suppress(FileNotFoundError):
        known = sorted(folder.glob("*.pbtxt"), key=lambda each: each.stat().st_mtime_ns)
        for each in known[:max(0, len(known) + 1 - MOST_KEPT)]:
            each.unlink(missing_ok=True)


def with_text(options: Mapping[str, str | bool | int]) -> Options:
    """XLA options with the text of a profile in place of its path, for another process or a plan file."""
    path = options.get(PROFILE)
    return {**options, PROFILE: Path(str(path)).read_text()} if path else dict(options)


def with_path(options: Mapping[str, str | bool | int], name: str) -> Options:
    """XLA options with the path of a profile in place of its text: the inverse of ``with_text``.

    Args:
      options: the options.
      name: where they come from, for messages.

    Raises:
      InputError: the text is not that of a profile of predicted times.
      OutputError: the user's cache folder cannot be written.
    """
    text = options.get(PROFILE)
    if not text:
        return dict(options)
    if not is_profile(text):
        raise InputError(f"sets {PROFILE} to something other than predicted times", location=name)
    return {**options, **profile_options(str(text))}
