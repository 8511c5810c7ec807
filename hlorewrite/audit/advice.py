"""Why XLA leaves communication where it is, and what a user can do about it."""

from collections.abc import Mapping

from hlorewrite.audit.accumulation import LeavesLoops
from hlorewrite.hlo.xla_versions import CODE_MOTION
from hlorewrite.ir.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from hlorewrite.util.sizes import format_bytes

ACCUMULATED, INVARIANT, SEPARATE, RESHARDED = "accumulated", "invariant", "separate", "resharded"
_THRESHOLDS = {kind: f"xla_gpu_{kind.replace('-', '_')}_combine_threshold_bytes"
               for kind in (ALL_REDUCE.kind, ALL_GATHER.kind, REDUCE_SCATTER.kind)}
_DEFAULT_THRESHOLD = 30 * 1024 * 1024 + 7
"""XLA's default of the combine thresholds (openxla/xla, xla/debug_options_flags.cc)."""


def why_accumulated(kind: str, leaves: LeavesLoops, options: Mapping[str, str], body: str) -> str:
    """Why a reduction that is only summed up still runs in every iteration.

    Args:
      kind: the kind of the collective.
      leaves: the loops it could leave.
      options: XLA flags of the job.
      body: the body of the loop it is in.

    Returns:
      A sentence, which says so if the text shows no reason.
    """
    if CODE_MOTION in options.get("xla_disable_hlo_passes", ""):
        return f"the job switched XLA's {CODE_MOTION} off"
    if kind == REDUCE_SCATTER.kind:
        return f"XLA:GPU leaves the part of {CODE_MOTION} for reduce-scatters switched off"
    if leaves.through or body not in leaves.out_of:
        return (f"XLA's {CODE_MOTION} takes a reduction only out of the innermost loop; this one is stacked by that "
                "loop and summed up by a loop around it")
    if leaves.scaled:
        return (f"a factor is applied between the reduction and the sum (for a mean, say), and XLA's {CODE_MOTION} "
                "does not look through it")
    return "the optimised text shows no reason; the program before optimisations may"


def why_invariant() -> str:
    """Why a collective of an unchanged value runs in every iteration."""
    return "XLA:GPU's loop-invariant code motion leaves collectives in their loop"


def why_separate(kind: str, payload: int, options: Mapping[str, str], several_types: bool) -> str:
    """Why calls that could be one are several."""
    flag = _THRESHOLDS[kind]
    stated = options.get(flag, "")
    threshold = int(stated) if stated.isdigit() else _DEFAULT_THRESHOLD
    if payload > threshold:
        return f"together they are larger than --{flag} ({format_bytes(threshold)})"
    if several_types:
        return "XLA combines only calls of one element type"
    return "the optimised text shows no reason; XLA combines before it schedules"


def advice(form: str, line: str, memory: int = 0, stacked: bool = False) -> str:
    """The advice to the user.

    Args:
      form: the form of the finding.
      line: the line of the loop or of the value; ``?`` if it is not known.
      memory: bytes a device keeps for it.
      stacked: each iteration of a loop takes another slice of the value.
    """
    where = f" at {line}" if line not in ("", "?") else ""
    if form == ACCUMULATED:
        return (f"reduce once after the loop{where}: hlorewrite.optimize around the jitted step, or "
                "hlorewrite exec -- COMMAND")
    if form == INVARIANT and stacked:
        return (f"gather the whole stack once before the loop{where}, for {format_bytes(memory)} more memory, and "
                "take slices of the result in it")
    if form == INVARIANT:
        return (f"gather once before the loop{where}, for {format_bytes(memory)} more memory: "
                'hlorewrite.optimize(step, passes="hoist-collectives"), or by hand')
    if form == SEPARATE:
        return 'one call for all: hlorewrite.optimize(step, passes="all-reduce-fusion"), or a larger combine threshold'
    return f"name the sharding: jax.lax.with_sharding_constraint on the value of {line}"
