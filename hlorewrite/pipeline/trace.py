"""``--trace=DIR``: every rewrite as one JSON line with the text before and after it."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from hlorewrite.errors import OutputError
from hlorewrite.ir.module import Module
from hlorewrite.pipeline.base import Pass
from hlorewrite.rules.events import Remark, RewriteRecord, RuleStatistics

FILE_NAME = "rewrites.jsonl"


class TraceWriter:
    """Writes rewrites as they happen, so that a failing run shows every step up to the failure.

    Args:
      folder: where ``rewrites.jsonl`` is written; made when it does not exist.

    Raises:
      OutputError: the folder cannot be made or written.
    """

    wants_text = True
    wants_missed = False

    def __init__(self, folder: str) -> None:
        self.pass_name = ""
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._file = open(Path(folder) / FILE_NAME, "w", encoding="utf-8")  # noqa: SIM115 (kept open)
        except OSError as error:
            raise OutputError(f"the trace cannot be written ({os.strerror(error.errno or 0)})", location=folder,
                              hint="name a folder that can be made and written") from None

    def before(self, step: Pass, module: Module) -> None:
        """Notes which pass runs now."""
        self.pass_name = str(step)

    def after(self, step: Pass, module: Module, changed: bool) -> None:
        """Makes sure that what the pass did is on disk."""
        self._file.flush()

    def remark(self, remark: Remark) -> None:
        """Remarks are told by ``--remarks``."""

    def rewrite(self, record: RewriteRecord) -> None:
        """Writes one line."""
        self._file.write(json.dumps({"pass": self.pass_name, **dataclasses.asdict(record)}) + "\n")

    def failed(self, error: Exception) -> None:
        """Writes the error as the last step."""
        self._file.write(json.dumps({"pass": self.pass_name, "error": str(error)}) + "\n")

    def statistics(self, rules: tuple[RuleStatistics, ...]) -> None:
        """Statistics are told by ``--stats``."""

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
