"""Loops whose collectives fill most of an iteration: there each call that is saved counts."""

from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import ALL_GATHER
from hlorewrite.passes.common.overlap_model import CROWDED


def is_crowded(block: ir.Block) -> bool:
    """Whether a block is part of a loop that ``rotate-collectives`` marks as crowded."""
    return CROWDED in block.owner.attributes


def joins(op: ir.Operation) -> bool:
    """Whether a collective is fused because of a crowded loop: it stands in one, or is a gather next to one.

    Gathers of the first layer stand before the rotated loop, where nothing hides them.
    """
    if is_crowded(op.block):
        return True
    return op.name == ALL_GATHER.op and any(CROWDED in each.operation.attributes for each in op.block.operations)
