"""The trace directory: names of its files, its version, and its manifest.

A trace is a directory. ``manifest.json`` says what ran; every other file is optional, and readers go on without it.
Lines of ``*.jsonl`` files are whole JSON objects, written as things happen. ``docs/viewer.md`` describes each file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hlorewrite import version
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
TIMELINE = "timeline.json"
SIMULATION = "simulation.json"
COMPILED = {"before": "compiled-before.json", "after": "compiled-after.json"}

OF_A_RUN = (MANIFEST, REWRITES, REMARKS, BEFORE, AFTER, TIMING, RULES, *COMPILED.values())
"""Files that a new run into the same directory replaces or removes; a timeline stays."""


def manifest(command: str, source: str, pipeline: str = "", topology: str = "") -> dict[str, Any]:
    """A manifest as it stands before anything has run.

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

    Raises:
      OutputError: the place cannot be written.
    """
    write_file(path, (json.dumps(content, separators=(",", ":"), ensure_ascii=False) + "\n").encode())


def is_directory_name(path: str) -> bool:
    """Whether a path given to ``pipeline simulate --trace`` means a trace directory and not one JSON file.

    Example:
      >>> is_directory_name("run"), is_directory_name("step.json")
      (True, False)
    """
    return not path.endswith(".json") or Path(path).is_dir()
