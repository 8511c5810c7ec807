"""Predicts the times of a block as it is, and with some of its ops in two halves."""

from collections.abc import Iterable, Mapping

from hlorewrite.analysis.block_frequency import executed_times
from hlorewrite.ir import COLLECTIVES, defining_op, ir, nested_ops, op_key
from hlorewrite.ir.regions import WHILE
from hlorewrite.passes.common.block_waits import BlockTimes, left_exposed
from hlorewrite.passes.common.dimension_region import RegionMember
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.interleave_halves.chains import Chains
from hlorewrite.passes.interleave_halves.choose import HalvesChoice
from hlorewrite.passes.interleave_halves.region import HALVES
from hlorewrite.timeline.stream_tasks import StreamTask, block_time

Places = tuple[int, ...]


def whole_seconds(ops: Iterable[ir.Operation], times: BlockTimes) -> float:
    """The time of the blocks that contain some ops, as they are, in one run of the module."""
    blocks = {op.block: op for op in ops}
    return sum(executed_times(op)[0] * times.of(block).seconds for block, op in blocks.items())


def saved_seconds(choice: HalvesChoice, chains: Chains, times: BlockTimes) -> dict[ir.Block, float]:
    """The time that a choice of halves saves in each block, in one run of the module.

    Args:
      choice: the members in halves.
      chains: the collectives for which compute should wait less.
      times: those of the module's blocks.

    Returns:
      Seconds, net of the choice's costs; negative where halves take longer.
    """
    members, model = choice.by_op(), times.model
    saved = {block: -cost for block, cost in choice.costs.items()}
    blocks: dict[ir.Block, set[int]] = {}
    for op in chains.ops.values():
        blocks.setdefault(op.block, set()).add(op_key(op))
    for block, keys in blocks.items():
        ops = [each.operation for each in block.operations]
        runs = executed_times(ops[0])[0]
        before, awaited = times.of(block), keys & chains.awaited
        left = sum(left_exposed(ops[place], before.waited.get(place, 0.0), model)
                   for place in times.between_kernels(block) if op_key(ops[place]) in awaited)
        after = block_time(_HalvedBlock(members, model).tasks(ops)).seconds
        saved[block] = saved.get(block, 0.0) + runs * (before.seconds + left - after)
    return saved


class _HalvedBlock:
    """The tasks of a block, two for each op in halves.

    Args:
      members: the members in halves by the keys of their ops.
      model: the model of the module.
    """

    def __init__(self, members: Mapping[int, list[RegionMember]], model: OverlapModel) -> None:
        self.members, self.model = members, model
        self._made: dict[ir.Value, Places] = {}

    def tasks(self, ops: Iterable[ir.Operation]) -> list[StreamTask]:
        """Tasks of the ops of a block, in order."""
        made: list[StreamTask] = []
        for op in ops:
            members = self.members.get(op_key(op), [])
            transfer = op.name in COLLECTIVES
            seconds = self.model.collective(op) if transfer else self.model.clock.seconds(op)
            if not members or op.name == WHILE:
                self._made.update(dict.fromkeys(op.results, (len(made),)))
                made.append(self._task(op, seconds, self._sources(op, None, ())))
                continue
            divided = {read.position for member in members for read in member.reads}
            both = tuple(range(len(made), len(made) + HALVES))
            self._made.update(dict.fromkeys(op.results, both))
            half = self.model.together([op], 1 / HALVES) if transfer else seconds / HALVES
            made += [self._task(op, half, self._sources(op, number, divided)) for number in range(HALVES)]
        return made

    def _task(self, op: ir.Operation, seconds: float, after: Places) -> StreamTask:
        return self.model.transfer(op, seconds, after) if op.name in COLLECTIVES else StreamTask(seconds, after)

    def _sources(self, op: ir.Operation, half: int | None, divided: Iterable[int]) -> Places:
        """The tasks that a half of an op waits for; a whole op if ``half`` is None."""
        inner = nested_ops(op)[1:] if len(op.regions) and op.name not in COLLECTIVES else ()
        captured = {value for each in inner for value in each.operands if value in self._made}
        found = {place for value in captured for place in self._made[value]}
        for position, value in enumerate(op.operands):
            places = self._made.get(value, ())
            one = half is not None and position in divided and len(places) == HALVES and self._in_halves(value)
            found |= set(places[half:half + 1] if one and half is not None else places)
        return tuple(sorted(found))

    def _in_halves(self, value: ir.Value) -> bool:
        """Whether a value is made in halves, and not summed from them."""
        maker = defining_op(value)
        return maker is not None and any(value in member.values for member in self.members.get(op_key(maker), ()))
