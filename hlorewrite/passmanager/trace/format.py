"""The trace directory: names of its files, its version, and its manifest.

A trace is a directory. ``manifest.json`` says what ran; every other file is optional, and readers go on without it.
Lines of ``*.jsonl`` files are whole JSON objects, written as things happen.

* ``manifest.json``: ``format`` (``hlorewrite-trace``), ``version`` (1), ``hlorewrite``, ``command``, ``input``,
  ``pipeline``, ``topology``, ``complete``, ``error``, ``before_is_after``, SHA-256 of the files read and written, and
  ``summary`` with pairs [before, after].
* ``rewrites.jsonl``: ``pass``, ``index``, ``rule``, ``rule_location``, ``location``, ``before`` and ``after`` (text of
  the ops), ``milliseconds``; an ``error`` as the last line of a failed run.
* ``remarks.jsonl``: ``pass``, ``kind`` (``applied``, ``blocked``, ``unprofitable``, ``missed``), ``rule``,
  ``sentence``, ``location``, ``op``, ``culprit``, ``culprit_location``; at most 200 ``missed`` ones for each rule.
* ``before.json``, ``after.json``: ``devices``, ``topology``, ``executed_bytes``, ``time_s``; ``collectives`` with kind,
  source line, axes, payload, trips, time, text, and the numbers of their ``groups`` and ``nest``; ``nests``: loops,
  branches and fragments with parent, line and trips.
* ``decision.json``: where ways to compile the step were compared, what ``opt --json`` prints of them.
* ``timing.json``: ``steps`` with milliseconds; ``passes`` with rewrites and executed bytes after each; ``rules`` as
  ``--stats`` counts them.
* ``rules.json``: equation, documentation and text of every rule and pass that rewrote something.
* ``compiled-before.json``, ``compiled-after.json``: what ``hlorewrite compile --json`` prints; for described GPUs also
  ``timeline``, the times and spans of the simulated step.
* ``sources.json``: three lines of the program around each place; only of Python files below the current folder.
* ``timeline.json``: a step as trace events, which Perfetto and ``chrome://tracing`` read.
* ``simulation.json``: what ``pipeline simulate --json`` prints.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlorewrite import version
from hlorewrite.errors import InputError, OutputError
from hlorewrite.util.read import MOST_TRACE_BYTES, read_json, read_regular
from hlorewrite.util.write import write_file

FORMAT = "hlorewrite-trace"
VERSION = 1
MANIFEST = "manifest.json"
REWRITES = "rewrites.jsonl"
REMARKS = "remarks.jsonl"
BEFORE = "before.json"
AFTER = "after.json"
TIMING = "timing.json"
RULES = "rules.json"
SOURCES = "sources.json"
DECISION = "decision.json"
TIMELINE = "timeline.json"
SIMULATION = "simulation.json"
COMPILED = {"before": "compiled-before.json", "after": "compiled-after.json"}

OF_A_RUN = (MANIFEST, REWRITES, REMARKS, BEFORE, AFTER, TIMING, RULES, SOURCES, DECISION,
            *COMPILED.values())
"""Files that a new run into the same directory replaces or removes; a timeline stays."""


@dataclass(frozen=True)
class TracedNest:
    """A loop, branch or fragment with collectives inside.

    Attributes:
      parent: the position of the one around it in the snapshot; -1 when there is none.
      op: ``while``, ``case``, ``if`` or ``fragment``.
      source: the user's line; the fragment and its mesh.
      trips: iterations of a loop, runs of a fragment; 1 for a branch, and for a loop of unknown count.
      trips_known: whether the count is a constant.
    """

    parent: int
    op: str
    source: str
    trips: int
    trips_known: bool


def path_of(nests: Sequence[TracedNest], place: int) -> tuple[tuple[str, str, int], ...]:
    """(op, source, trips) of the loops and branches around a place, outermost first.

    Args:
      nests: those of one side of a run.
      place: the position of the innermost one; -1 if there is none.

    Example:
      >>> path_of([TracedNest(-1, "while", "a.py:1", 4, True), TracedNest(0, "if", "a.py:2", 1, True)], 1)
      (('while', 'a.py:1', 4), ('if', 'a.py:2', 1))
    """
    path = []
    # Ends: each step goes to the loop or branch around, which was listed before.
    while place >= 0:
        nest = nests[place]
        path.append((nest.op, nest.source, nest.trips))
        place = nest.parent
    return tuple(reversed(path))


def manifest(command: str, source: str, pipeline: str = "", topology: str = "") -> dict[str, Any]:
    """A manifest as it is before anything has run.

    Args:
      command: what ran: ``opt``, ``optimize`` or ``pipeline simulate``.
      source: the module, as messages name it.
      pipeline: the passes, as text.
      topology: the cluster that times are predicted for; empty means none was named.

    Returns:
      A JSON object; ``complete`` is false until the run is over.
    """
    return {"format": FORMAT, "version": VERSION, "hlorewrite": version.VERSION, "command": command, "input": source,
            "pipeline": pipeline, "topology": topology or None, "complete": False, "error": None, "summary": {}}


def write_json(path: Path, content: object) -> None:
    """Writes one JSON file of a trace, whole or not at all.

    A symbolic link in the place of the file is replaced: a trace of others must not say where we write.

    Raises:
      OutputError: the place cannot be written.
    """
    with suppress(OSError):
        if path.is_symlink():
            path.unlink()
    write_file(path, (json.dumps(content, separators=(",", ":"), ensure_ascii=False) + "\n").encode())


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a trace; None when the folder contains no trace of hlorewrite."""
    try:
        found = read_json(read_regular(folder / MANIFEST, MOST_TRACE_BYTES))
    except (OSError, ValueError, RecursionError, InputError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def make_folder(path: str) -> Path:
    """Makes the folder of a trace, or takes one that is empty or contains a trace.

    Args:
      path: the folder; folders above it are made too.

    Raises:
      OutputError: it cannot be made or listed, or it contains files of others.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = sorted(os.listdir(folder))
    except OSError as error:
        raise OutputError(f"the trace cannot be written ({os.strerror(error.errno or 0)})", location=path,
                          hint="name a folder that can be created and is writable") from None
    if others and read_manifest(folder) is None:
        raise OutputError(f'the folder contains "{others[0]}" and no trace', location=path,
                          hint="name a new or an empty folder: a trace replaces files")
    return folder


def is_directory_name(path: str) -> bool:
    """Whether a path given to ``pipeline simulate --trace`` means a trace directory and not one JSON file.

    Example:
      >>> is_directory_name("run"), is_directory_name("step.json")
      (True, False)
    """
    return not path.endswith(".json") or Path(path).is_dir()
