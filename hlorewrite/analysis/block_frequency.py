"""How often ops run."""

from hlorewrite.analysis.branches import taken_shares
from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir.binding import ir
from hlorewrite.ir.regions import BRANCHES

ASSUMED_TRIPS = 8
"""Iterations assumed of a loop whose count is not a constant, for cost only."""


def executed_times(op: ir.Operation, known_blocks: dict[ir.Block, tuple[float, bool]] | None = None
                   ) -> tuple[float, bool]:
    """How often an op runs: the product of the trip counts of the loops around it.

    Args:
      op: any op.
      known_blocks: how often blocks run each time the op around them does, as far as asked before; it is added to.

    Returns:
      (times, whether every count was known). An op in one of n branches counts as often as its branch is known to be
      taken, or 1/n; a loop of unknown count ``ASSUMED_TRIPS``.
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
    """Whether an op stands in a branch that is known never to be taken; XLA removes such branches."""
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
