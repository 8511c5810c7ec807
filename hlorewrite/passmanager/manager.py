"""Runs passes in order: each is timed, verified, held to the module's signature, and dumped if asked for."""

import os
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from hlorewrite.errors import TRACEBACK_VARIABLE, HlorewriteError, PassFailed
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.mlir_pass import place_of
from hlorewrite.passmanager.programs import is_program, program_adapter
from hlorewrite.passmanager.signature import PLACEMENT, Signature, changes, signature_of


class Observer(Protocol):
    """Sees the module before and after each pass."""

    def before(self, pass_: Pass, module: Module) -> None: ...
    def after(self, pass_: Pass, module: Module, changed: bool) -> None: ...


@dataclass
class Timings:
    """Seconds spent in each step, in the order they ran.

    Attributes:
      rows: (step, seconds); a pass that ran twice has two rows.
    """

    rows: list[tuple[str, float]] = field(default_factory=list)

    def add(self, step: str, seconds: float) -> None:
        """Appends one row."""
        self.rows.append((step, seconds))


def run_passes(module: Module, passes: Sequence[Pass], ctx: PassContext, *, observers: Sequence[Observer] = (),
               timings: Timings | None = None) -> bool:
    """Runs passes over a module in place.

    Args:
      module: the module to rewrite; after an error it is in an undefined state and must not be used.
      passes: the passes, in order.
      ctx: what the passes are given.
      observers: what sees the module before and after each pass.
      timings: where to note the time of each pass and of the verifier.

    Returns:
      Whether any pass changed the module.

    Raises:
      PassFailed: a pass raised unexpectedly, left a module that does not verify, or changed the signature.
      HlorewriteError: a pass refused the module.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.passmanager.spec import parse_pipeline
      >>> module = parse("func.func @f(%a: tensor<f32>) -> tensor<f32> {"
      ...                "%0 = stablehlo.add %a, %a : tensor<f32>  return %a : tensor<f32> }")
      >>> run_passes(module, parse_pipeline("inline,canonicalize"), PassContext())
      True
      >>> "add" in module.text()
      False
    """
    timings = timings or Timings()
    signature = signature_of(module)
    changed = False
    for step in passes:
        for observer in observers:
            observer.before(step, module)
        start = time.perf_counter()
        edits = module.edits
        step_changed = _run_one(step, module, ctx) or module.edits > edits  # a pass may forget an edit of its own
        timings.add(str(step), time.perf_counter() - start)
        if step_changed:
            start = time.perf_counter()
            _verify(step, module)
            signature = _guard(step, module, signature)
            timings.add("verify", time.perf_counter() - start)
            changed = True
        for observer in observers:
            observer.after(step, module, step_changed)
    return changed


def _run_one(pass_: Pass, module: Module, ctx: PassContext) -> bool:
    ctx.pass_name = pass_.name if pass_.name != "mlir" else str(pass_)
    if not type(pass_).__module__.startswith("hlorewrite."):  # a pass of yours may make ops of any dialect
        module.context.load_all_available_dialects()
    try:
        if pass_.by_mesh and is_program(module):
            return program_adapter(module).run_by_mesh(pass_, module, ctx)
        return pass_.run(module, ctx)
    except HlorewriteError:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        words = str(error).strip().splitlines()
        shown = type(error).__name__ + (f": {words[0]}" if words else "")
        raise PassFailed(f'pass "{pass_}" failed unexpectedly ({shown})', location=module.name,
                         hint=f"set {TRACEBACK_VARIABLE}=1 to see where, and report it with the reproducer") from error


def _verify(pass_: Pass, module: Module) -> None:
    diagnostics = module.verify()
    if diagnostics:
        error = next((d for d in diagnostics if d.severity == "error"), diagnostics[0])
        raise PassFailed(f'pass "{pass_}" left a module that does not verify: {error.message.splitlines()[0]}',
                         location=place_of(module, error.location), hint="report it with the reproducer")


def _guard(pass_: Pass, module: Module, before: Signature) -> Signature:
    after = signature_of(module)
    ignored = PLACEMENT if pass_.changes_shardings else frozenset()
    differences = [] if pass_.changes_signature else changes(before, after, ignored)
    if differences:
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        raise PassFailed(f'pass "{pass_}" changed the signature: {differences[0]}{more}', location=module.name,
                         hint="report it with the reproducer, or leave the pass out")
    return after


# ---- ``--print-ir-before/after``: the module on stderr around chosen passes, under MLIR's banner


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
