"""Digests of rewritten modules, by which processes agree that they compile the same."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.version import VERSION


def digest(module: Module, pipeline: str) -> str:
    """A digest of a module without its locations, of the pipeline and of this package's version."""
    parts = (VERSION, pipeline, module.digest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class DigestOnDemand:
    """The digest of a serialized module, made when it is first asked for: printing takes a tenth of the passes' time.

    Attributes:
      module: the module, serialized.
      name: of the module, for messages.
      pipeline: the passes that made it.

    Example:
      >>> written = b"func.func @main() { return }"
      >>> DigestOnDemand(written, "empty", "cse").found == digest(parse(written, name="empty"), "cse")
      True
    """

    module: bytes = field(repr=False)
    name: str
    pipeline: str

    def __eq__(self, other: object) -> bool:
        """By digest: serialized modules that are equal may differ in their bytes."""
        return isinstance(other, DigestOnDemand) and self.found == other.found

    def __hash__(self) -> int:
        """By digest."""
        return hash(self.found)

    @cached_property
    def found(self) -> str:
        """The digest."""
        return digest(parse(self.module, name=self.name), self.pipeline)
