"""Passes of MLIR itself: their table, and one run by jaxlib's pass manager, with mistakes reported in one line."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from jaxlib import version as jaxlib_version

from hlorewrite.errors import PassFailed, UsageError
from hlorewrite.ir import Diagnostic, captured_diagnostics, first_error, ir, line_of_text, new_context, passmanager
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass, PassContext


@dataclass(frozen=True)
class MlirPass(Pass):
    """One pass of jaxlib's MLIR.

    Attributes:
      mlir_name: its name in MLIR.
      options: what is between its braces, as MLIR reads it.
      in_function: whether it runs on each function instead of the module.
    """

    name = "mlir"
    mlir_name: str
    options: str = ""
    in_function: bool = False

    @property
    def text(self) -> str:
        """The whole pipeline text for jaxlib's pass manager."""
        return f"builtin.module({self._nested()})"

    def _nested(self) -> str:
        inner = f"{self.mlir_name}{{{self.options}}}" if self.options else self.mlir_name
        return f"func.func({inner})" if self.in_function else inner

    def __str__(self) -> str:
        return self._nested()

    def run(self, module: Module, ctx: PassContext) -> bool:
        before = module.text(debug_info=True) if ctx.compare else None
        manager = parse_manager(self.text, module.context, f'pass "{self.mlir_name}"')
        with captured_diagnostics(module.context) as diagnostics:
            try:
                manager.run(module.operation)
            except ir.MLIRError as error:
                diagnostics.extend(Diagnostic("error", str(d.location), d.message) for d in error.error_diagnostics)
                raise self._failure(diagnostics, module) from None
        ctx.diagnostics.extend(diagnostics)
        ctx.forget_view()
        return before is None or before != module.text(debug_info=True)

    def _failure(self, diagnostics: list[Diagnostic], module: Module) -> PassFailed:
        error = first_error(diagnostics)
        what = error.message.splitlines()[0].rstrip(".") if error else "it does not say why"
        return PassFailed(f'pass "{self}" failed: {what}', location=place_of(module, error.location if error else ""),
                          hint="leave the pass out, or change the module")


def make_mlir_pass(name: str, options: str, anchors: tuple[str, ...]) -> MlirPass:
    """A pass of MLIR, after checking that it can run where it is nested and takes these options.

    Args:
      name: its name, in ``MLIR_PASSES``.
      options: what is between its braces.
      anchors: the ops it is nested in, outermost first; empty means it is alone.

    Returns:
      The pass; standing alone, a pass on functions is nested in ``func.func`` by itself.

    Raises:
      UsageError: it is nested where it cannot run, or does not take the options.

    Example:
      >>> str(make_mlir_pass("sdy-insert-explicit-reshards", "", ()))
      'func.func(sdy-insert-explicit-reshards)'
    """
    anchor = MLIR_PASSES[name].anchor
    inside_function = bool(anchors) and anchors[-1] == "func.func"
    if anchor == "module" and inside_function:
        raise UsageError(f'pass "{name}" works on a whole module and cannot be nested in func.func(...)',
                         hint=f"write builtin.module({name})")
    if anchor == "function" and anchors and not inside_function:
        raise UsageError(f'pass "{name}" works on functions and cannot be in {anchors[-1]}(...)',
                         hint=f"write func.func({name})")
    made = MlirPass(name, " ".join(options.split()), inside_function or anchor == "function")
    if made.options:
        parse_manager(made.text, new_context(), f'pass "{name}"')
    return made


def parse_manager(text: str, context: ir.Context, owner: str) -> passmanager.PassManager:
    """jaxlib's pass manager for a pipeline whose nesting has been checked.

    Args:
      text: the pipeline in MLIR's own syntax.
      context: the context to run in.
      owner: what the pipeline belongs to, for messages.

    Returns:
      The pass manager.

    Raises:
      UsageError: jaxlib does not know the pass or does not accept its options.
    """
    failure = ""
    with captured_stderr() as printed:
        try:
            return passmanager.PassManager.parse(text, context)
        except ValueError as error:
            failure = str(error)
    # LLVM's option parser prints its reason instead of putting it into the exception.
    words = " ".join(line.strip(" :") for line in [*printed, *failure.splitlines()] if line.strip(" :^"))
    unknown = re.search(r"no such option (\S+)", words)
    if unknown:
        raise UsageError(f'{owner} has no option "{unknown.group(1)}"', hint="see MLIR's documentation of the pass")
    reason = re.search(r"for the --(\S+) option: (.*?)(?: failed to add|$)", words)
    what = f'option "{reason.group(1)}" of {owner}: {reason.group(2).rstrip("! ")}' if reason else f"{owner}: {words}"
    raise UsageError(what, hint="see MLIR's documentation of the pass")


@contextmanager
def captured_stderr() -> Iterator[list[str]]:
    """Collects the lines C++ code writes to file descriptor 2 while the block runs; read them after the block."""
    lines: list[str] = []
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            lines += file.read().decode(errors="replace").splitlines()


# ---- where a message points: the user's source line, or the line of the module's own file


def place_of(module: Module, location: str) -> str:
    """The place a message about a module should name.

    Args:
      module: the module.
      location: the printed form of an MLIR location; empty when there is none.

    Returns:
      ``file:line:col`` of the user's program; for a module without locations, of its own file; else its file alone.
    """
    where = line_of_text(location)
    if where == "?" or where.endswith(":0:0"):
        return module.name
    return f"{module.name}{where[1:]}" if where.startswith("-:") else where


# ---- the passes of MLIR and Shardy that jaxlib carries and that make sense on JAX modules

# Two columns, because jaxlib cannot be asked: where a pass can run (a pass *pipeline* of Shardy nested in ``func.func``
# aborts the process instead of raising), and its help. A name missing here is unknown to us even if jaxlib has it.


Anchor = Literal["module", "function", "any"]


@dataclass(frozen=True)
class MlirPassEntry:
    """One pass of jaxlib.

    Attributes:
      name: its name in MLIR.
      anchor: the op it runs on: ``module``, ``function`` or ``any``.
      help: one line.
    """

    name: str
    anchor: Anchor
    help: str


def _rows(anchor: Anchor, **rows: str) -> list[MlirPassEntry]:
    return [MlirPassEntry(name.replace("_", "-"), anchor, text) for name, text in rows.items()]


def _sdy(anchor: Anchor, *names: str) -> list[MlirPassEntry]:
    return [MlirPassEntry(f"sdy-{name}", anchor, f"Shardy: {name.replace('-', ' ')}.") for name in names]


_ENTRIES = [
    *_rows("any",
           canonicalize="Applies MLIR's canonicalization patterns until nothing changes.",
           control_flow_sink="Moves ops into the only region that uses them.",
           cse="Removes ops that compute what another op already computes.",
           loop_invariant_code_motion="Moves loop-invariant ops before their loop.",
           print_op_stats="Prints how often each op occurs, to stderr.",
           sccp="Folds what sparse conditional constant propagation proves constant.",
           strip_debuginfo="Removes all locations.",
           topological_sort="Sorts ops so that each value is defined before its uses.",
           trivial_dce="Removes ops without effects whose results are not used."),
    *_rows("module",
           remove_dead_values="Removes arguments, results and ops of private functions that are not used.",
           symbol_dce="Removes private functions and meshes that nothing refers to."),
    *_sdy("module",
          "add-data-flow-edges", "add-func-data-flow-edges", "aggressive-propagate", "apply-sharding-constraints",
          "basic-propagate", "close-shardings", "constant-or-scalar-splitter", "convert-global-to-local",
          "drop-sharding-and-mesh", "export-named-computations", "export-pipeline", "flatten-call-graph",
          "import-func-calls", "import-pipeline", "inline-meshes", "insert-func-call-reshards", "lift-inlined-meshes",
          "manual-axes-cleanup", "op-priority-propagate", "propagate-sharding-from-func-to-call",
          "propagate-to-func-results", "propagation-pipeline", "remove-propagation-debug-info",
          "remove-sharding-groups", "remove-size-one-axes", "remove-sub-axes-in-input-output-shardings",
          "resolve-permutation-factors", "sharding-group-import", "unflatten-call-graph",
          "update-non-divisible-input-output-shardings", "user-priority-propagate"),
    *_sdy("function",
          "constant-or-scalar-merger", "drop-sharding-rules", "explicit-gather-scatter-batching",
          "insert-explicit-reshards", "populate-op-sharding-rules", "reshard-to-collectives",
          "sharding-constraint-to-reshard", "sink-data-flow-edges", "sink-func-data-flow-edges"),
    *_sdy("module" if jaxlib_version.__version_info__ >= (0, 12) else "function", "pad-for-divisibility"),
]
MLIR_PASSES: dict[str, MlirPassEntry] = {entry.name: entry for entry in _ENTRIES}
"""Pass name to where it runs and its help."""
