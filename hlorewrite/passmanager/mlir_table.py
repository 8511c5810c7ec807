"""The passes of MLIR and Shardy that jaxlib carries and that make sense on JAX modules.

Two columns, because jaxlib cannot be asked: where a pass can run (a pass *pipeline* of Shardy nested in ``func.func``
aborts the process instead of raising), and its help. A name missing here is unknown to us even if jaxlib has it.
"""

from dataclasses import dataclass
from typing import Literal

from jaxlib import version as jaxlib_version

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
