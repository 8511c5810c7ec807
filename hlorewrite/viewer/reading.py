"""Reads a trace directory, whatever state it is in: what is damaged or missing becomes a note, not an error."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hlorewrite.errors import InputError, UsageError
from hlorewrite.passmanager.trace import format as form
from hlorewrite.util.read import MOST_TRACE_BYTES, read_json, read_regular

_KNOWN = (*form.OF_A_RUN, form.TIMELINE, form.SIMULATION)
_MOST_NAMED = 3


@dataclass
class Trace:
    """The readable part of a trace.

    Attributes:
      name: the path, as the user wrote it.
      objects: the content of each whole JSON file that is there, by file name.
      lines: the JSON objects of each ``*.jsonl`` file, by file name.
      notes: messages about what is missing or damaged.
    """

    name: str
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    lines: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest; empty when there is none."""
        return self.objects.get(form.MANIFEST, {})


def read_trace(path: str) -> Trace:
    """Reads a trace.

    Args:
      path: a trace directory, a directory that contains exactly one, or a timeline as trace events in one JSON file.

    Returns:
      What could be read, with notes on what is missing.

    Raises:
      InputError: there is nothing there, or it is not a trace.
      UsageError: the directory contains several traces.
    """
    if os.path.isfile(path):
        return _timeline_alone(path)
    if not os.path.isdir(path):
        raise InputError("no such file or directory", location=path,
                         hint="name the DIR of a run with --trace=DIR")
    folder = Path(path)
    if not any((folder / name).is_file() for name in _KNOWN):
        folder = _inner(folder)
    return _read(folder, path)


def _inner(folder: Path) -> Path:
    """The one trace below a directory."""
    traces = sorted(each for each in folder.iterdir() if (each / form.MANIFEST).is_file())
    if not traces:
        raise InputError("is not a trace", location=str(folder),
                         hint="name the DIR of a run with --trace=DIR")
    if len(traces) > 1:
        names = ", ".join(each.name for each in traces[:_MOST_NAMED])
        more = f" and {len(traces) - _MOST_NAMED} more" if len(traces) > _MOST_NAMED else ""
        raise UsageError(f"contains {len(traces)} traces: {names}{more}; name one of them, such as {traces[0]}")
    return traces[0]


def _timeline_alone(path: str) -> Trace:
    trace = Trace(path)
    content = _json(Path(path), trace)
    if content is None or not isinstance(content.get("traceEvents"), list):
        raise InputError("is not a trace: neither a directory nor trace events in JSON", location=path,
                         hint="name the DIR of a run with --trace=DIR, or the file of `pipeline simulate --trace`")
    trace.objects[form.TIMELINE] = content
    trace.objects[form.MANIFEST] = form.manifest("timeline", os.path.basename(path)) | {"complete": True}
    return trace


def _read(folder: Path, name: str) -> Trace:
    trace = Trace(name)
    for each in _KNOWN:
        path = folder / each
        if not path.is_file():
            continue
        if each.endswith(".jsonl"):
            trace.lines[each] = _json_lines(path, trace)
        elif (content := _json(path, trace)) is not None:
            trace.objects[each] = content
    trace.notes[:0] = _notes(trace)
    return trace


def _notes(trace: Trace) -> list[str]:
    """What the manifest and the missing files say about the whole."""
    manifest, notes = trace.manifest, []
    if not manifest:
        notes.append(f"{form.MANIFEST} is missing, so the page cannot say what ran.")
    elif (version := manifest.get("version")) != form.VERSION:
        notes.append(f"The trace has format version {version}, and this page reads version {form.VERSION}: "
                     "it shows what it understands.")
    if manifest and not manifest.get("complete"):
        notes.append("The run did not finish." if manifest.get("error") is None
                     else f"The run failed: {manifest['error']}")
    if isinstance(exposing := manifest.get("before_is_after"), str):
        notes.append(f"“Before” is the module after {exposing}: before that, XLA had not made its collectives yet.")
    if manifest.get("command") not in ("pipeline simulate", "timeline"):
        missing = [name for name in (form.BEFORE, form.AFTER, form.REWRITES, form.REMARKS, form.TIMING, form.RULES)
                   if name not in trace.objects and name not in trace.lines]
        if missing:
            notes.append(f"Missing: {', '.join(missing)}.")
    return notes


def _json(path: Path, trace: Trace) -> dict[str, Any] | None:
    try:
        content = read_json(read_regular(path, MOST_TRACE_BYTES, what="trace").decode("utf-8"), keep=True)
    except InputError as error:
        trace.notes.append(f"{path.name} {error.what}, and is left out.")
    except OSError as error:
        trace.notes.append(f"{path.name} cannot be read ({os.strerror(error.errno or 0)}).")
    except (ValueError, RecursionError):
        trace.notes.append(f"{path.name} is cut short or damaged, and is left out.")
    else:
        if isinstance(content, dict):
            return content
        trace.notes.append(f"{path.name} does not contain what it should, and is left out.")
    return None


def _json_lines(path: Path, trace: Trace) -> list[dict[str, Any]]:
    rows, damaged = [], []
    try:
        text = read_regular(path, MOST_TRACE_BYTES, what="trace").decode("utf-8", "replace")
    except InputError as error:
        trace.notes.append(f"{path.name} {error.what}, and is left out.")
        return rows
    except OSError as error:
        trace.notes.append(f"{path.name} cannot be read ({os.strerror(error.errno or 0)}).")
        return rows
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = read_json(line, keep=True)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            damaged.append(number)
    if damaged:
        which = f"line {damaged[0]}" if len(damaged) == 1 else f"{len(damaged)} lines, beginning with {damaged[0]}"
        trace.notes.append(f"{path.name}: {which} cut short or damaged, and left out.")
    return rows
