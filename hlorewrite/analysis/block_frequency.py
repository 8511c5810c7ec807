"""How often ops run."""

from fractions import Fraction

import numpy as np

from hlorewrite.analysis.loops import loop_counters, trip_count
from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.ir import BRANCHES, Loop, ir

ASSUMED_TRIPS = 8
"""Iterations assumed, only for cost, for a loop whose trip count is not a constant."""


def executed_times(op: ir.Operation, known_blocks: dict[ir.Block, tuple[float, bool]] | None = None
                   ) -> tuple[float, bool]:
    """How often an op runs: the product of the trip counts of the loops around it.

    Args:
      op: any op.
      known_blocks: a cache of how often blocks run for each run of the op around them; this function adds to it.

    Returns:
      (times, whether every count was known). A branch of n counts by its known share, or 1/n; a loop of unknown trip
      count runs ``ASSUMED_TRIPS`` times.
    """
    times, known, block = 1.0, True, op.block
    found = {} if known_blocks is None else known_blocks
    # Ends: each step goes to the block around.
    while block is not None and (parent := block.owner.operation).name != "builtin.module":
        if block not in found:
            found[block] = times_of_block(block)
        factor, counted = found[block]
        times, known, block = times * factor, known and counted, parent.block
    return times, known


def never_runs(op: ir.Operation) -> bool:
    """Whether an op is in a branch that is known never to be taken; XLA removes such branches."""
    block = op.block
    # Ends: each step goes to the block around.
    while block is not None and (parent := block.owner.operation).name != "builtin.module":
        if parent.name in BRANCHES and times_of_block(block)[0] == 0:
            return True
        block = parent.block
    return False


def times_of_block(block: ir.Block) -> tuple[float, bool]:
    """How often a block runs each time the op around it does.

    Args:
      block: a block of an op with regions.

    Returns:
      (times, whether the count was known): a loop's trips, ``ASSUMED_TRIPS`` of an unknown one, the share of a branch.
    """
    op = block.owner.operation
    if op.name == "stablehlo.while":
        count = trip_count(op)
        return (ASSUMED_TRIPS, False) if count is None else (count, True)
    if op.name in BRANCHES:
        shares = taken_shares(op)
        if shares is None:
            return 1 / len(op.regions), True
        return float(next(share for share, region in zip(shares, op.regions, strict=True)
                          if region.blocks[0] == block)), True
    return 1.0, True


# ---- how often each branch is taken, if the counter of the enclosing loop decides


def taken_shares(op: ir.Operation) -> tuple[Fraction, ...] | None:
    """How often a branching op takes each branch, as a share of its executions.

    Args:
      op: a ``stablehlo.case`` or ``stablehlo.if``.

    Returns:
      A share for each region, 1 in total; None unless its predicate is computed from constants alone, or in the body of
      a loop with known trip count from constants and that loop's counters.
    """
    counters, trips = _counters(op)
    table = PerDeviceConstants.of_iterations(counters).table(op.operands[0])
    if table is None:
        return None
    taken = np.broadcast_to(table[0], (trips,)).astype(np.int64)
    last = len(op.regions) - 1
    if op.name == "stablehlo.if":
        chosen = np.where(taken != 0, 0, 1)
    else:  # an index out of range selects the last branch
        chosen = np.where((taken >= 0) & (taken <= last), taken, last)
    counts = np.bincount(chosen, minlength=last + 1)
    return tuple(Fraction(int(count), trips) for count in counts)


def _counters(op: ir.Operation) -> tuple[dict[ir.Value, np.ndarray], int]:
    """The values of the enclosing loop's counters in each iteration, and the number of iterations; one outside of
    loops."""
    around = op.parent
    if around is None or around.operation.name != "stablehlo.while":
        return {}, 1
    loop = Loop(around.operation)
    return (loop_counters(loop) if op.block == loop.body else None) or ({}, 1)
