"""The lines of the user's program around each place a trace names, so that the page can show them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hlorewrite.errors import InputError
from hlorewrite.util.read import read_regular

AROUND = 1
"""Lines shown before and after the line that is named."""
MOST_PLACES = 1000
_MOST_LINE = 200


def source_texts(places: Iterable[str], folder: Path) -> dict[str, list[tuple[int, str]]]:
    """Three lines of Python for each place.

    A module names any file it likes, so only Python files below the current folder are read.

    Args:
      places: ``file:line:col``; the first thousand that differ are taken.
      folder: what names are relative to.

    Returns:
      ``file:line`` to its lines with their numbers; places whose file or line is not there are left out.

    Example:
      >>> import tempfile
      >>> folder = Path(tempfile.mkdtemp())
      >>> _ = (folder / "a.py").write_text("x = 1\\ny = 2\\n")
      >>> source_texts(["a.py:2:1", "a.py:9:1", "../a.py:1:1", "a.txt:1:1"], folder)
      {'a.py:2': [(1, 'x = 1'), (2, 'y = 2')]}
    """
    files: dict[str, list[str]] = {}
    found: dict[str, list[tuple[int, str]]] = {}
    for place in list(dict.fromkeys(places))[:MOST_PLACES]:
        name, line = _parts(place)
        if not name.endswith(".py") or line < 1:
            continue
        if name not in files:
            files[name] = _lines(folder, name)
        if line <= len(files[name]):
            first = max(0, line - 1 - AROUND)
            found[f"{name}:{line}"] = [(first + number + 1, text[:_MOST_LINE])
                                       for number, text in enumerate(files[name][first:line + AROUND])]
    return found


def _parts(place: str) -> tuple[str, int]:
    name, line = [*place.rsplit(":", 2), "", ""][:2]
    return name, int(line) if line.isdecimal() else 0


def _lines(folder: Path, name: str) -> list[str]:
    path = os.path.realpath(folder / name)
    if not path.startswith(os.path.realpath(folder) + os.sep):
        return []
    try:
        return read_regular(path, what="Python file").decode("utf-8").splitlines()
    except (InputError, OSError, ValueError):
        return []
