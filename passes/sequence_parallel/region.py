"""Values that may be sharded together with the result of an all-reduce."""

from collections.abc import Mapping

from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import decision, ir, op_key
from hlorewrite.ir.view import ancestors
from hlorewrite.passes.common.dimension_region import RegionFinder, RegionMember

_TRANSPARENT = ("func.func", "sdy.manual_computation")


class ShardRegionFinder(RegionFinder):
    """Follows a sharded dimension: only a value that is equal on all members of a group has shards.

    Args:
      reductions: key of an op to the op, for the all-reduces of the group that may become reduce-scatters.
      size: members of a group.
      uniformity: over these groups.
    """

    def __init__(self, reductions: Mapping[int, ir.Operation], size: int, uniformity: Uniformity) -> None:
        super().__init__(size)
        self.reductions = reductions
        self.uniformity = uniformity

    def collective_member(self, op: ir.Operation, dimension: int, position: int | None) -> RegionMember | str:
        """All-reduces of the group make shards; other collectives read whole values."""
        if position is not None:
            return ""
        if op_key(op) not in self.reductions:
            return "needs the dimension whole"
        return RegionMember(op, (op.results[0],), (), reduces=True)

    def uneven(self, dimension: int, size: int, block: int) -> str:
        """Why a dimension cannot be divided evenly."""
        return f"has a dimension {dimension} of size {size}, which {self.parts} devices do not divide evenly"

    def obstacle(self, member: RegionMember) -> str:
        """Refuses values that differ between the devices of a group, and places that not all of them reach."""
        for value in member.values or tuple(member.op.results):
            reason = self.uniformity.varying(value)
            if reason is not None:
                return f"gives each device of a group a different value: {reason.sentence}"
        return self._runs_apart(member.op)

    def _runs_apart(self, op: ir.Operation) -> str:
        """Why the members of a group may not all run a collective at an op; empty when they do."""
        for outer in (op, *ancestors(op)):
            decides = decision(outer)
            if decides is None and (outer == op or outer.name in _TRANSPARENT):
                continue
            if decides is None:
                return f"is in {outer.name}"
            reason = self.uniformity.varying(decides)
            if reason is not None:
                return f"runs on only some devices of a group: {reason.sentence}"
        return ""
