"""A minimum cut chooses the members of a region that are computed in halves.

A member is computed in halves (source side) or whole (sink side). Ops between two collectives that compute waits for
are in halves, so each collective has compute to overlap with. Other ops are in halves only if that costs less than
joining values that are made in halves and read whole, and cutting values that are made whole and read in halves.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hlorewrite.analysis.block_frequency import executed_times
from hlorewrite.analysis.deferral_graph.max_flow import FlowNetwork
from hlorewrite.cost.kernels.clock import kernel_op
from hlorewrite.ir import COLLECTIVES, Loop, defining_op, ir, op_key, tensor_bytes, terminator
from hlorewrite.ir.regions import WHILE
from hlorewrite.ops.dims import repeats_whole
from hlorewrite.passes.common.dimension_region import Region, RegionMember
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.common.separate_copies import copied_for, copied_from, is_concatenated
from hlorewrite.passes.interleave_halves.chains import Chains
from hlorewrite.passes.interleave_halves.region import HALVES

_SOURCE, _SINK, _FIRST = 0, 1, 2
_UNIT = 1e12
"""Picoseconds, since capacities are integers."""
_NEVER = 1 << 80
"""More than everything else together."""


@dataclass(frozen=True)
class HalvesChoice:
    """The members computed in halves, and the cost.

    Attributes:
      region: the region of the members.
      chosen: indices of members that are computed in halves.
      costs: seconds in one run of the module, by block: cuts, joins and sums of halves, and kernels that take more than
        half as long for a half. Calls do, too, but may be hidden: `gain` simulates them.
    """

    region: Region
    chosen: frozenset[int]
    costs: Mapping[ir.Block, float]

    def by_op(self) -> dict[int, list[RegionMember]]:
        """The members in halves by the keys of their ops; a loop or a barrier may have several."""
        members: dict[int, list[RegionMember]] = {}
        for index in sorted(self.chosen):
            member = self.region.members[index]
            members.setdefault(op_key(member.op), []).append(member)
        return members


class HalvesChooser:
    """Chooses for one region.

    Args:
      region: the members.
      model: the model of the module.
    """

    def __init__(self, region: Region, model: OverlapModel) -> None:
        self.region, self.model = region, model
        self._times: dict[ir.Block, tuple[float, bool]] = {}

    def best(self, wanted: Chains) -> HalvesChoice:
        """The cheapest choice in which some ops are computed in halves.

        Args:
          wanted: these ops; those outside the region stay whole.
        """
        members = self.region.members
        made, cut = self.region.maker, self._read_in_halves()
        network = FlowNetwork(_FIRST + len(members) + len(self.region.maker) + len(cut))
        for index, member in enumerate(members):
            if self._is_wanted(member, wanted):
                network.add(_SOURCE, _FIRST + index, _NEVER)
            network.add(_FIRST + index, _SINK, _capacity(self._longer(member)))
        node = _FIRST + len(members)
        for value, index in self.region.maker.items():
            network.add(_FIRST + index, node, _capacity(self._join_seconds(value)))
            for _, _, reader in self.region.readers(value):
                network.add(node, _SINK if reader is None else _FIRST + reader, _NEVER)
            node += 1
        for value, readers in cut.items():
            for reader in readers:
                network.add(_FIRST + reader, node, _NEVER)
            network.add(node, _FIRST + made[value] if value in made else _SINK,
                        _capacity(self._cut_seconds(value, readers)))
            node += 1
        side = network.source_side(_SOURCE, _SINK)
        chosen = frozenset(index for index in range(len(members)) if side[_FIRST + index])
        return HalvesChoice(self.region, chosen, self._costs(chosen, cut))

    def _costs(self, chosen: frozenset[int], cut: Mapping[ir.Value, set[int]]) -> dict[ir.Block, float]:
        region, costs = self.region, defaultdict[ir.Block, float](float)
        for index in chosen:
            member = region.members[index]
            if member.op.name not in COLLECTIVES:
                costs[member.op.block] += self._longer(member)
        for value, index in region.maker.items():
            if index in chosen and any(reader not in chosen for _, _, reader in region.readers(value)):
                costs[_op_where_made(value).block] += self._join_seconds(value)
        for value, readers in cut.items():
            if region.maker.get(value) not in chosen and not chosen.isdisjoint(readers):
                costs[_op_where_made(value).block] += self._cut_seconds(value, readers)
        return dict(costs)

    def _read_in_halves(self) -> dict[ir.Value, set[int]]:
        """The members that read each value in halves, without values whose halves cost nothing to recompute."""
        cut: dict[ir.Value, set[int]] = {}
        for index, member in enumerate(self.region.members):
            for read in member.reads:
                value = read.op.operands[read.position]
                maker = defining_op(value)
                if maker is None or not repeats_whole(maker, read.dimension):
                    cut.setdefault(value, set()).add(index)
        return cut

    def _is_wanted(self, member: RegionMember, wanted: Chains) -> bool:
        if member.position is None:
            return op_key(member.op) in wanted.keys and not member.gives_partial_sums
        op = terminator(Loop(member.op).body) if member.op.name == WHILE else member.op
        return (op_key(op), member.position) in wanted.places

    # ---- seconds in one run of the module

    def _longer(self, member: RegionMember) -> float:
        """The seconds by which the two halves of a member exceed the whole."""
        op = member.op
        if op.name == WHILE:
            return 0.0
        return self._runs(op) * max(0.0, longer_in_halves(op, member, self.model))

    def _join_seconds(self, value: ir.Value) -> float:
        """The seconds to join a value's halves; a concatenation that reads the value joins them, too."""
        return self._fused(value) if is_concatenated(value) else self._moved(value)

    def _cut_seconds(self, value: ir.Value, readers: Collection[int]) -> float:
        """The seconds to cut a value; if its readers need halves in memory, its kernel writes these."""
        separate = copied_from(value) or any(reader not in readers or not copied_for(op)
                                             for op, _, reader in self.region.readers(value))
        return self._moved(value) if separate else self._fused(value)

    def _fused(self, value: ir.Value) -> float:
        """The seconds to join a value's halves, or to cut it, in kernels that read or write it anyway."""
        return self._runs(_op_where_made(value)) * self.model.clock.rates.launch_s

    def _moved(self, value: ir.Value) -> float:
        """The seconds to join a value's halves, or to cut it, in a separate kernel: one read and one write."""
        return self._runs(_op_where_made(value)) * 2 * tensor_bytes(value.type) / self.model.clock.memory_bytes_per_s

    def _runs(self, op: ir.Operation) -> float:
        return executed_times(op, self._times)[0]


def longer_in_halves(op: ir.Operation, member: RegionMember, model: OverlapModel) -> float:
    """The seconds that halving adds to one run of an op: operands that both halves read, latencies and sums.

    Args:
      op: the op of a member.
      member: says what is divided.
      model: the model of the module.
    """
    if op.name in COLLECTIVES:
        return calls_longer(op, model)
    rates = model.clock.rates
    made = sum(tensor_bytes(value.type) for value in op.results)
    sums = 3 * made / rates.memory_bytes_per_s if member.gives_partial_sums else 0.0
    products = kernel_op(op, (), ()).products
    if not products:
        return sums
    divided = {read.position for read in member.reads}
    read = [tensor_bytes(value.type) / (HALVES if place in divided else 1) for place, value in enumerate(op.operands)]
    half = [type(each)(each.dtype, each.flops / HALVES) for each in products]
    half_moved = sum(read) + (made if member.gives_partial_sums else made / HALVES)
    whole_moved = sum(tensor_bytes(value.type) for value in op.operands) + made
    return HALVES * rates.seconds(half_moved, half) - rates.seconds(whole_moved, products) + sums


def calls_longer(op: ir.Operation, model: OverlapModel) -> float:
    """The seconds by which two calls of half a collective exceed one call."""
    return HALVES * model.together([op], 1 / HALVES) - model.collective(op)


def _op_where_made(value: ir.Value) -> ir.Operation:
    """An op of the block where a value is made: what makes it, or the terminator."""
    return defining_op(value) or terminator(ir.BlockArgument(value).owner)


def _capacity(seconds: float) -> int:
    return int(seconds * _UNIT)
