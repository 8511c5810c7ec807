"""Ops that may be computed in two halves together with a collective."""

from hlorewrite.ir import ir
from hlorewrite.ops.dims import collective_factor
from hlorewrite.passes.common.dimension_region import DividedRead, RegionFinder, RegionMember
from hlorewrite.passes.common.overlap_model import HALF

HALVES = 2


class HalfRegionFinder(RegionFinder):
    """Follows a dimension whose halves are independent: the batch, experts, or any that no op mixes."""

    def __init__(self) -> None:
        super().__init__(HALVES)

    def collective_member(self, op: ir.Operation, dimension: int, position: int | None) -> RegionMember | str:
        """A collective sends each half separately, unless it cuts or joins values along the dimension."""
        if HALF in op.attributes:
            return "sends a half already"
        factor = collective_factor(op, dimension)
        if isinstance(factor, str):
            return factor
        return RegionMember(op, tuple(op.results), (DividedRead(op, 0, dimension),))

    def uneven(self, dimension: int, size: int) -> str:
        """Why a dimension has no halves."""
        return f"has a dimension {dimension} of size {size}, which cannot be halved"

    def obstacle(self, member: RegionMember) -> str:
        """No further conditions: a device computes both halves itself, and members have no effects."""
        return ""
