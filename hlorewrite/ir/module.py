"""A parsed module, with what is needed to write it back in the form it came in."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass, replace

from hlorewrite.ir.binding import ir
from hlorewrite.ir.context import Diagnostic, captured_diagnostics
from hlorewrite.util.frames import USUAL_FRAMES, Frames


class Format(enum.Enum):
    """The forms a module can be stored in."""

    TEXT = "text"
    GENERIC = "generic"
    BYTECODE = "bytecode"
    PORTABLE = "portable"
    EXPORT = "export"


@dataclass
class Module:
    """A parsed module and where it came from.

    Attributes:
      mlir: the MLIR module; passes may put another one of the same context here.
      name: the file it came from, as errors should name it.
      format: the form it was read in.
      envelope: the serialized ``jax.export`` around it, if it came from one.
      version: the StableHLO version of the portable artifact it came from.
      has_locations: whether the input had locations (text without ``loc(...)`` has none).
      frames: which frames of call stacks are the user's own.
      edits: number of edits that an ``Editor`` has made.
    """

    mlir: ir.Module
    name: str = "-"
    format: Format = Format.TEXT
    envelope: bytes | None = None
    version: str | None = None
    has_locations: bool = False
    frames: Frames = USUAL_FRAMES
    edits: int = 0

    @property
    def context(self) -> ir.Context:
        """The MLIR context everything of this module lives in."""
        return self.mlir.context

    @property
    def operation(self) -> ir.Operation:
        """The ``builtin.module`` operation."""
        return self.mlir.operation

    def clone(self) -> Module:
        """An independent copy in the same context."""
        copy = self.mlir.operation.clone().operation
        fresh = ir.Module.create(self.mlir.operation.location)
        for attribute in list(copy.attributes):
            fresh.operation.attributes[attribute] = copy.attributes[attribute]
        for op in list(copy.regions[0].blocks[0].operations):
            fresh.body.append(op)
        copy.erase()
        return replace(self, mlir=fresh)

    def verify(self) -> list[Diagnostic]:
        """Runs MLIR's verifier; returns its diagnostics, empty when the module is sound."""
        with captured_diagnostics(self.context) as diagnostics:
            try:
                ok = self.mlir.operation.verify()
            except ir.MLIRError as error:
                diagnostics.extend(Diagnostic("error", str(d.location), d.message) for d in error.error_diagnostics)
                ok = False
        if not ok and not diagnostics:
            diagnostics.append(Diagnostic("error", "", "the module does not verify"))
        return [] if ok else diagnostics

    def text(self, *, debug_info: bool = False, generic: bool = False, elide_over: int | None = None) -> str:
        """The module as MLIR text.

        Args:
          debug_info: print locations.
          generic: print every op in generic form.
          elide_over: print constants of more elements than this as ``...``; such text cannot be parsed again.

        Returns:
          Text that ends in one newline.
        """
        # The binding takes 64 bits, and no constant has more elements.
        limit = None if elide_over is None or elide_over >= 1 << 63 else elide_over
        text = self.mlir.operation.get_asm(enable_debug_info=debug_info, print_generic_op_form=generic,
                                           large_elements_limit=limit)
        return str(text).rstrip("\n") + "\n"

    def digest(self) -> str:
        """SHA-256 of the module's text without locations, as hexadecimal digits."""
        return hashlib.sha256(self.text().encode()).hexdigest()
