"""Measured choices on disk, so that a search that was stopped goes on where it was."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from hlorewrite.errors import InputError, OutputError
from hlorewrite.tune.choice import TuneChoice, TunePoint
from hlorewrite.util.read import read_json, read_regular
from hlorewrite.util.write import write_file

FORMAT = 2
MOST_BYTES = 64 << 20


@dataclass
class TuneCache:
    """The points of one module, target and set of versions.

    Args:
      folder: the folder, created if it is missing; None keeps nothing.
      parts: all that points depend on: the module's text, the target, versions, the user's flags.

    Raises:
      OutputError: the folder cannot be written.
      InputError: this class did not write the file in it.
    """

    folder: Path | None
    parts: tuple[str, ...]
    points: dict[TuneChoice, TunePoint] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            known = self.path.exists()
        except OSError as error:
            raise OutputError(f"cannot be a cache ({os.strerror(error.errno or 0)})", location=str(self.folder),
                              hint="pass a writable folder with --cache, or use --no-cache") from None
        if not known:
            return
        try:
            content = read_json(read_regular(self.path, MOST_BYTES, what="cache of hlorewrite tune"))
            if content["format"] == FORMAT:
                made = [TunePoint.from_json(each) for each in content["points"]]
                self.points.update({point.choice: point for point in made})
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            raise InputError("is not a cache of hlorewrite tune", location=str(self.path),
                             hint="delete it, or use --no-cache") from None

    @property
    def path(self) -> Path:
        """The file."""
        digest = hashlib.sha256("\0".join((str(FORMAT), *self.parts)).encode()).hexdigest()
        return (self.folder or Path()) / f"{digest[:32]}.json"

    def add(self, point: TunePoint) -> TunePoint:
        """Keeps a point, and returns it."""
        self.points[point.choice] = point
        if self.folder is not None:
            content = {"format": FORMAT, "points": [each.as_json() for each in self.points.values()]}
            write_file(self.path, json.dumps(content, indent=1).encode() + b"\n")
        return point
