"""MLIR contexts, made without importing jax (0.2 s less at start-up), and their diagnostics."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hlorewrite.ir.binding import ir, register_all


def new_context(allow_unregistered_dialects: bool = False, *, load: bool = True) -> ir.Context:
    """A context that has every dialect a JAX module can contain, and that starts no threads.

    Args:
      allow_unregistered_dialects: accept ops of unknown dialects in generic form.
      load: whether the dialects are loaded that rewrites make ops of (``func``, ``sdy``, ``mpmd``, ``chlo``, ``mhlo``),
        which takes 0.4 ms. Otherwise only StableHLO is. Reading a module loads those that it contains; ops of others
        can be created after ``context.get_dialect_descriptor(name)``.

    Returns:
      The context. Modules of different contexts cannot be mixed.

    Example:
      >>> module = ir.Module.parse("func.func @f() { return }", new_context())
      >>> module.operation.verify()
      True
    """
    context = ir.Context()
    # A worker thread of MLIR that reports an error waits for the GIL, to call Python's handler. The thread that parses
    # or verifies holds the GIL, and waits for the worker: both wait forever.
    context.enable_multithreading(False)
    register_all(context, load=load)
    context.allow_unregistered_dialects = allow_unregistered_dialects
    return context


@dataclass(frozen=True)
class Diagnostic:
    """One message of MLIR: severity (``error``, ``warning``, ``remark``, ``note``), location text, message."""

    severity: str
    location: str
    message: str


@contextmanager
def captured_diagnostics(context: ir.Context) -> Iterator[list[Diagnostic]]:
    """Collects what MLIR would print to stderr while the block runs.

    Args:
      context: the context whose diagnostics are caught.

    Yields:
      A list that fills as diagnostics arrive.
    """
    diagnostics: list[Diagnostic] = []
    stopped: list[BaseException] = []

    def handle(diagnostic: ir.Diagnostic) -> bool:
        # An exception must not leave this function: it would unwind C++ code that is not made for it. A damaged
        # binary file makes messages that are not UTF-8.
        try:
            severity = str(diagnostic.severity).rsplit(".", 1)[-1].lower()
            try:
                diagnostics.append(Diagnostic(severity, str(diagnostic.location), diagnostic.message))
                diagnostics.extend(Diagnostic("note", str(note.location), note.message) for note in diagnostic.notes)
            except RuntimeError:
                diagnostics.append(Diagnostic(severity, "", "names in the module are not UTF-8 text"))
        except BaseException as signalled:  # a signal that is handled here: it is raised when the block ends
            stopped.append(signalled)
        return True

    handler: Any = context.attach_diagnostic_handler(handle)
    try:
        yield diagnostics
    finally:
        handler.detach()
        if stopped:
            raise stopped[0]


def first_error(diagnostics: list[Diagnostic]) -> Diagnostic | None:
    """The first error among diagnostics; None when there is none."""
    return next((d for d in diagnostics if d.severity == "error"), None)
