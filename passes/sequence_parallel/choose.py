"""A minimum cut chooses the members of a region that work on shards.

A member works on shards (source side) or on whole values (sink side). These send bytes: an all-reduce that stays (twice
those of a reduce-scatter), a value made in shards and read whole (an all-gather), a partial sum (an all-reduce).
Slicing a whole value costs nothing. A value computed whole also takes memory. With a price for memory in bytes on the
wire, the cheapest choice of all is a minimum cut, since each cost depends on one member, or on a maker of a value being
on the source side while one of its readers is not.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hlorewrite.analysis.block_frequency import executed_times
from hlorewrite.analysis.deferral_graph.max_flow import FlowNetwork
from hlorewrite.ir import Loop, defining_op, ir, tensor_bytes, terminator
from hlorewrite.passes.common.dimension_region import Region, RegionMember

PRICES = (4000, 1000, 250, 50, 10)
"""Thousandths of a byte on the wire that a byte of memory is worth, the largest first."""
_SOURCE, _SINK, _FIRST = 0, 1, 2
_UNIT = 1000


@dataclass(frozen=True)
class ShardChoice:
    """The sharded values, and their cost.

    Attributes:
      region: the region of the members.
      chosen: indices of members that work on shards.
      before: bytes that each device sends for the region's all-reduces in one run of the module, as they are.
      after: the same for the choice, with gathers and sums of partial sums.
      memory: bytes of the values computed in shards that a device no longer holds.
      carried: the part of these that loops carry.
    """

    region: Region
    chosen: frozenset[int]
    before: int
    after: int
    memory: int
    carried: int


class ShardChooser:
    """Chooses for one region.

    Args:
      region: the members.
      size: members of a group.
    """

    def __init__(self, region: Region, size: int) -> None:
        self.region = region
        self.size = size
        self._times: dict[ir.Block, tuple[float, bool]] = {}
        self._reads = {value: [reader for _, _, reader in region.readers(value)] for value in region.maker}
        self._sent = {value: self._bytes(value) for value in region.maker}

    def best(self, extra: float) -> ShardChoice:
        """The choice that saves the most memory for a limited increase of communication.

        Args:
          extra: share of the bytes sent before that may be sent in addition.

        Returns:
          The choice; nothing is chosen when every choice sends more.
        """
        for price in PRICES:
            choice = self._costed(self._cut(price))
            if choice.after <= choice.before * (1 + extra):
                return choice
        return self._costed(frozenset())

    def _cut(self, price: int) -> frozenset[int]:
        members = self.region.members
        network = FlowNetwork(_FIRST + len(members) + len(self._reads))
        reading = _FIRST + len(members)
        for index, member in enumerate(members):
            node = _FIRST + index
            network.add(_SOURCE, node, self._part(member) * price)
            if member.reduces:
                network.add(_SOURCE, node, self._sent[member.values[0]] * _UNIT)
            if member.gives_partial_sums:
                network.add(node, _SINK, self._partial(member) * _UNIT)
            for value in member.values:
                network.add(node, reading, self._sent[value] * _UNIT)
                for reader in set(self._reads[value]):
                    network.add(reading, _SINK if reader is None else _FIRST + reader, _NEVER)
                reading += 1
        side = network.source_side(_SOURCE, _SINK)
        return frozenset(index for index in range(len(members)) if side[_FIRST + index])

    def _costed(self, chosen: frozenset[int]) -> ShardChoice:
        before = after = memory = carried = 0
        for index, member in enumerate(self.region.members):
            if member.reduces:
                before += 2 * self._sent[member.values[0]]
                after += (1 if index in chosen else 2) * self._sent[member.values[0]]
            if index not in chosen:
                continue
            memory += self._part(member)
            carried += self._part(member) if _is_carried(member) else 0
            after += self._partial(member) if member.gives_partial_sums else 0
            after += sum(self._sent[value] for value in member.values if not chosen.issuperset(self._reads[value]))
        return ShardChoice(self.region, chosen, before, after, memory, carried)

    def _part(self, member: RegionMember) -> int:
        """Bytes of a member's values that a device does not hold if they are sharded; a carried value counts once.

        A reduced value alone saves nothing: scattered and gathered at once, it is as large as before.
        """
        values = () if member.reduces else member.values[:1] if _is_carried(member) else member.values
        return sum(tensor_bytes(value.type) // self.size * (self.size - 1) for value in values)

    def _partial(self, member: RegionMember) -> int:
        return sum(2 * self._bytes(result) for result in member.op.results)

    def _bytes(self, value: ir.Value) -> int:
        """Bytes that a device sends to gather a value, over all runs of the op that makes it."""
        maker = defining_op(value)
        if maker is None:
            maker = terminator(Loop(ir.BlockArgument(value).owner.owner.operation).body)
        times, _ = executed_times(maker, self._times)
        return int(tensor_bytes(value.type) * (self.size - 1) / self.size * times)


_NEVER = 1 << 80
"""More than everything else together."""


def _is_carried(member: RegionMember) -> bool:
    return member.op.name == "stablehlo.while"


def best_of(regions: list[Region], size: int, extra: float,
            wanted: Callable[[ShardChoice], bool] = lambda choice: True) -> ShardChoice | None:
    """The choice that saves most memory among those for several dimensions; the lowest dimension when equal.

    Args:
      regions: the regions of one all-reduce, in the order of its dimensions.
      size: members of a group.
      extra: share of the bytes sent before that may be sent in addition.
      wanted: choices to consider.

    Returns:
      The choice; None when none saves memory.
    """
    choices = [choice for region in regions if region.members
               and (choice := ShardChooser(region, size).best(extra)).memory > 0 and wanted(choice)]
    return max(choices, key=lambda choice: (choice.memory, -choice.after), default=None)
