"""``--print-ir-before/after``: the module on stderr around chosen passes, under MLIR's banner."""

import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TextIO

from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass


@dataclass
class IrPrinter:
    """Prints modules around passes.

    Attributes:
      before_names: names of passes to print before.
      after_names: names of passes to print after.
      before_all: print before every pass.
      after_all: print after every pass.
      after_change: print after passes that changed the module.
      debug_info: print locations.
      generic: print every op in generic form.
      elide_over: print constants of more elements than this as ``...``.
      stream: where to; stderr by default.
    """

    before_names: Collection[str] = ()
    after_names: Collection[str] = ()
    before_all: bool = False
    after_all: bool = False
    after_change: bool = False
    debug_info: bool = False
    generic: bool = False
    elide_over: int | None = None
    stream: TextIO = field(default_factory=lambda: sys.stderr)

    def before(self, pass_: Pass, module: Module) -> None:
        """Prints the module if a dump before this pass is requested."""
        if self.before_all or names_of(pass_) & set(self.before_names):
            self._print(f"Before {pass_}", module)

    def after(self, pass_: Pass, module: Module, changed: bool) -> None:
        """Prints the module if a dump after this pass is requested."""
        if self.after_all or (self.after_change and changed) or names_of(pass_) & set(self.after_names):
            self._print(f"After {pass_}", module)

    def _print(self, what: str, module: Module) -> None:
        text = module.text(debug_info=self.debug_info, generic=self.generic, elide_over=self.elide_over)
        self.stream.write(f"// -----// IR Dump {what} //----- //\n{text}\n")


def names_of(pass_: Pass) -> set[str]:
    """The names a pass can be called by: its text, and its name without options and nesting."""
    return {str(pass_), getattr(pass_, "mlir_name", pass_.name)}
