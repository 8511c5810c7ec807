"""Ops that may be computed in two halves together with a collective."""

from hlorewrite.ir import ir
from hlorewrite.ops.attributes import shape_of
from hlorewrite.ops.dims import collective_piece
from hlorewrite.passes.common.dimension_region import DividedRead, RegionFinder, RegionMember
from hlorewrite.passes.common.overlap_model import HALF

HALVES = 2


class HalfRegionFinder(RegionFinder):
    """Follows a dimension whose halves are independent: the batch, experts, or any that no op mixes.

    Rows that are gathered from devices, or scattered over them, are halved device by device.
    """

    def __init__(self) -> None:
        super().__init__(HALVES)

    def block(self, collective: ir.Operation, dimension: int) -> int:
        """What the first collective sends to one device, or joins from one, is a block."""
        piece = collective_piece(collective, dimension)
        return shape_of(collective.results[0])[dimension] if isinstance(piece, str) else piece

    def collective_member(self, op: ir.Operation, dimension: int, position: int | None) -> RegionMember | str:
        """A collective sends each half separately, if devices exchange whole blocks."""
        if HALF in op.attributes:
            return "sends a half already"
        piece = collective_piece(op, dimension)
        if isinstance(piece, str):
            return piece
        known = op.results[0] if position is None else op.operands[0]
        if piece % max(1, self._region.blocks[known]):
            return "cuts values along the dimension, or joins them"
        return RegionMember(op, tuple(op.results), (DividedRead(op, 0, dimension),))

    def uneven(self, dimension: int, size: int, block: int) -> str:
        """Why a dimension has no halves."""
        blocks = size // max(1, block)
        of_blocks = f" in {blocks} blocks" if blocks > 1 else ""
        return f"has a dimension {dimension} of size {size}{of_blocks}, which cannot be halved"

    def obstacle(self, member: RegionMember) -> str:
        """No further conditions: a device computes both halves itself, and members have no effects."""
        return ""
