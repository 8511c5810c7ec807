"""``--trace=DIR``: a run as a directory of JSON files, for ``hlorewrite view``.

Rewrites and remarks are written as they happen, so that a run that fails shows every step up to the failure; the rest
is written when it is known. ``trace_format`` names the files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hlorewrite.errors import HlorewriteError, InputError, OutputError
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.trace import format as form
from hlorewrite.rules.listener import Remark, RewriteRecord, RuleStatistics
from hlorewrite.util.read import read_regular

if TYPE_CHECKING:
    from hlorewrite.passmanager.manager import Timings
    from hlorewrite.passmanager.trace.snapshot import Snapshot

_EXPOSING = ("expose-collectives",)
MOST_MISSED = 200
"""``missed`` remarks of one rule that are kept; a large module can have one for every op."""


class TraceWriter:
    """Writes one run; it is an observer of passes and a listener to their remarks and rewrites.

    Args:
      folder: the directory: new, empty, or of an earlier run, whose files are removed.
      command: what runs: ``opt`` or ``optimize``.
      source: the module, as messages name it.
      pipeline: the passes, as text.
      topology: the cluster to predict times for; empty for bytes only.

    Raises:
      OutputError: the folder cannot be made or written, or contains other files than a trace.

    Attributes:
      failure: why the trace ended before the run did, a full disk for example; the run itself goes on.
    """

    wants_text = True
    wants_missed = True
    wants_mismatches = True

    def __init__(self, folder: str, *, command: str = "opt", source: str = "", pipeline: str = "",
                 topology: str = "") -> None:
        self.folder = form.make_folder(folder)
        self.failure: OutputError | None = None
        self.manifest = form.manifest(command, source, pipeline, topology)
        self.pass_name = ""
        self._topology = topology
        self._first: Snapshot | None = None
        self._last: Snapshot | None = None
        self._passes: list[dict[str, Any]] = []
        self._rules: dict[tuple[str, str], None] = {}
        self._counts: dict[tuple[str, str], RuleStatistics] = {}
        self._missed: Counter[str] = Counter()
        self._rewrites = self._of_pass = 0
        self._named: dict[str, None] = {}
        try:
            for name in form.OF_A_RUN:
                if name != form.MANIFEST:  # it says that the folder is ours until the new one takes its place
                    (self.folder / name).unlink(missing_ok=True)
            self._file, self._remarks = self._opened(form.REWRITES), self._opened(form.REMARKS)
        except OSError as error:
            raise OutputError(f"the trace cannot be written ({os.strerror(error.errno or 0)})", location=folder,
                              hint="name a folder that can be created and is writable") from None
        form.write_json(self.folder / form.MANIFEST, self.manifest)

    def _opened(self, name: str) -> IO[str]:
        return open(self.folder / name, "w", encoding="utf-8")

    def _write(self, name: str, content: object) -> None:
        self._guarded(lambda: form.write_json(self.folder / name, content))

    def _line(self, file: IO[str], content: dict[str, Any]) -> None:
        self._guarded(lambda: file.write(json.dumps(content) + "\n"))

    def _guarded(self, write: Callable[[], object]) -> None:
        """Writes, unless writing has failed before: the run itself matters more than its trace."""
        if self.failure is not None:
            return
        try:
            write()
        except OutputError as error:
            self.failure = error
        except OSError as error:
            self.failure = OutputError(f"the trace ends early ({os.strerror(error.errno or 0)})",
                                       location=str(self.folder), hint="free space, and run it again")

    # ---- the module before and after

    def begin(self, module: Module, data: bytes = b"") -> None:
        """The module as it was read, and the bytes of its file; nothing has changed it yet."""
        from hlorewrite.passmanager.trace.snapshot import snapshot
        self._first = self._last = snapshot(module, self._topology)
        self.manifest["digest_before"] = digest(data)
        self._write(form.BEFORE, self._first.as_dict())

    def decided(self, decision: Mapping[str, Any], pipeline: str) -> None:
        """Records the chosen way to compile the step, and names the passes that run now."""
        self.manifest["pipeline"] = pipeline
        self._write(form.DECISION, dict(decision))

    def end(self, timings: Timings, data: bytes = b"") -> None:
        """The passes are over; ``data`` is the file that is written."""
        if self._first is None or self._last is None:
            return
        self._write(form.AFTER, self._last.as_dict())
        self._write(form.RULES, {"rules": rule_texts(self._rules)})
        places = [line.what.source for side in (self._first, self._last) for line in side.report.lines]
        nests = [nest.source for side in (self._first, self._last) for nest in side.nests]
        self._write(form.SOURCES, {"lines": source_texts([*places, *nests, *self._named], Path.cwd())})
        steps = [{"step": step, "milliseconds": seconds * 1e3} for step, seconds in timings.rows]
        self._write(form.TIMING, {"steps": steps, "passes": self._passes,
                                  "rules": [dataclasses.asdict(rule) for rule in self._counts.values()]})
        before, after = self._first.report, self._last.report
        self.manifest["digest_after"] = digest(data)
        self.manifest["summary"] = {
            "devices": after.devices, "rewrites": self._rewrites, "missed_left_out": self._left_out(),
            "collectives": [len(before.lines), len(after.lines)],
            "executed_bytes": [before.executed_bytes, after.executed_bytes], "time_s": [before.time_s, after.time_s],
            "exposed_time_s": [None, None]}  # not simulated
        self.manifest["complete"] = True

    def _left_out(self) -> int:
        return sum(max(0, count - MOST_MISSED) for count in self._missed.values())

    # ---- around passes

    def before(self, pass_: Pass, module: Module) -> None:
        """Notes which pass runs now."""
        self.pass_name = str(pass_)
        self._of_pass = self._rewrites

    def after(self, pass_: Pass, module: Module, changed: bool) -> None:
        """Notes what the module communicates now, and makes sure that what the pass did is on disk."""
        from hlorewrite.passmanager.trace.snapshot import snapshot
        if changed and self._last is not None:
            now = snapshot(module, self._topology)
            if self._rewrites == self._of_pass:
                self._tell_differences(pass_, self._last, now)
            self._last = now
            if pass_.name in _EXPOSING:
                self._begin_anew(pass_.name)
        row = {"pass": self.pass_name, "changed": changed, "rewrites": self._rewrites - self._of_pass}
        if self._last is not None:
            row |= {"collectives": len(self._last.report.lines), "executed_bytes": self._last.report.executed_bytes}
        self._passes.append(row)
        self._guarded(self._file.flush)
        self._guarded(self._remarks.flush)

    def _begin_anew(self, pass_name: str) -> None:
        """Before a pass that makes collectives visible there was nothing to compare with."""
        self._first = self._last
        self.manifest["before_is_after"] = pass_name
        if self._first is not None:
            self._write(form.BEFORE, self._first.as_dict())

    def _tell_differences(self, pass_: Pass, before: Snapshot, after: Snapshot) -> None:
        """The rewrites of a pass that records none: the collectives it removed and added."""
        from hlorewrite.passmanager.trace.snapshot import differences
        name = pass_.name if pass_.name != "mlir" else str(pass_)
        for difference in differences(before, after):
            self.rewrite(RewriteRecord(self._rewrites, name, "", location=difference.source,
                                       before="\n".join(difference.removed), after="\n".join(difference.added),
                                       milliseconds=0.0))

    # ---- reports of passes

    def remark(self, remark: Remark) -> None:
        """Writes one line; at most ``MOST_MISSED`` ``missed`` ones per rule."""
        if remark.kind == "missed":
            self._missed[remark.rule] += 1
            if self._missed[remark.rule] > MOST_MISSED:
                return
        kept = {key: value for key, value in [*dataclasses.asdict(remark).items(), ("help", remark.help)] if value}
        self._line(self._remarks, {"pass": self.pass_name, **kept})

    def rewrite(self, record: RewriteRecord) -> None:
        """Writes one line."""
        self._rules[record.rule, record.rule_location] = None
        self._named[record.location] = None
        self._rewrites += 1
        self._line(self._file, {"pass": self.pass_name, **dataclasses.asdict(record)})

    def statistics(self, rules: tuple[RuleStatistics, ...]) -> None:
        """Adds up what each rule did."""
        from hlorewrite.passmanager.reports import added
        for rule in rules:
            key = (rule.rule, rule.location)
            self._counts[key] = added(self._counts[key], rule) if key in self._counts else rule

    # ---- the end

    def failed(self, error: Exception) -> None:
        """Writes the error as the last step."""
        self.manifest["error"] = str(error)
        self._line(self._file, {"pass": self.pass_name, "error": str(error)})

    def close(self) -> None:
        """Closes the files; the manifest says whether the run finished."""
        for file in (self._file, self._remarks):
            self._guarded(file.flush)
            with suppress(OSError):
                file.close()
        self._write(form.MANIFEST, self.manifest)


def digest(data: bytes) -> str | None:
    """Returns whether another command sees the same file; None when there is none."""
    return hashlib.sha256(data).hexdigest() if data else None


def side_of(folder: str, data: bytes, name: str) -> str:
    """Whether a file is what a traced run began with, or what it wrote.

    Args:
      folder: the trace.
      data: the content of the file.
      name: its name, for messages.

    Returns:
      ``before`` or ``after``.

    Raises:
      InputError: the folder contains no trace, or the trace is of another file.
    """
    known = form.read_manifest(Path(folder))
    if known is None:
        raise InputError("is not a trace", location=folder, hint="name the DIR of `hlorewrite opt --trace=DIR`")
    for side in ("after", "before"):  # a run that changed nothing wrote what it read
        if known.get(f"digest_{side}") == digest(data):
            return side
    raise InputError("is neither the file that was traced nor the output of the run", location=name,
                     hint=f"trace it with `hlorewrite opt {name} --trace={folder} -o ...`")


# ---- the text of the rules and passes that rewrote something, for readers of a trace


def rule_texts(seen: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """What each rule says.

    Args:
      seen: (rule, where it is written); a place that is empty means that a pass rewrote by itself.

    Returns:
      For each ``rule``, ``location``, ``equation`` (its first line of documentation), ``docs`` and ``text``; what
      cannot be found any more is empty.
    """
    rows = []
    for rule, location in dict.fromkeys(seen):
        text = _written(rule, location) if location else _of_pass(rule)
        rows.append({"rule": rule, "location": location, "equation": text[0], "docs": text[1], "text": text[2]})
    return rows


def _written(name: str, location: str) -> tuple[str, str, str]:
    from hlorewrite.rules.library import checked, read_source
    from hlorewrite.rules.syntax import ast
    from hlorewrite.rules.syntax.printer import print_file
    file = location.rpartition(":")[0]
    try:
        tree, _ = checked(read_source(file.removeprefix("patterns/") if file.startswith("patterns/") else file))
    except HlorewriteError:  # the file was moved while the run went on; the rewrite itself is still worth showing
        return "", "", ""
    for item in tree.items:
        if isinstance(item, ast.Rule) and item.name == name:
            bare = replace(item, docs=(), comments=(), trailing="")
            docs = [*item.docs, ""]
            return docs[0], "\n".join(docs[1:]).strip(), print_file(ast.File((bare,))).strip()
    return "", "", ""


def _of_pass(name: str) -> tuple[str, str, str]:
    from hlorewrite.passmanager.mlir_pass import MLIR_PASSES
    from hlorewrite.passmanager.registry import find_pass
    if name in MLIR_PASSES:
        return MLIR_PASSES[name].help, "", ""
    try:
        text = inspect.cleandoc(find_pass(name).__doc__ or "")
    except HlorewriteError:
        return "", "", ""
    first, _, rest = text.partition("\n")
    return first, re.split(r"^(?:Attributes|Example):$", rest, maxsplit=1, flags=re.MULTILINE)[0].strip(), ""


# ---- the lines of the user's program around each place a trace names, so that the page can show them


AROUND = 1
"""Lines shown before and after the line that is named."""
MOST_PLACES = 1000
_MOST_LINE = 200


def source_texts(places: Iterable[str], folder: Path) -> dict[str, list[tuple[int, str]]]:
    """Three lines of source code for each place.

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
