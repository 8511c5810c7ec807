"""Predicts how much of the reductions after a loop a copy of its last iteration hides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hlorewrite.analysis.block_frequency import ASSUMED_TRIPS
from hlorewrite.analysis.loops import trip_count
from hlorewrite.cost.kernels.clock import KERNELS
from hlorewrite.ir import COLLECTIVES, REDUCING, Loop, defining_op, ir, op_key, tensor_bytes, users
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.common.stacked_rows import row_stacks
from hlorewrite.timeline.stream_tasks import StreamTask, block_time
from hlorewrite.util.reachability import reachable

_MOST_ROWS = 1024
"""The number of parts in which a longer loop is simulated."""


@dataclass(frozen=True)
class ReductionBehind:
    """A reduction in a loop's block that reads results of the loop.

    Attributes:
      op: the reduction.
      slots: the positions of the results it reads.
    """

    op: ir.Operation
    slots: frozenset[int]

    @property
    def bytes(self) -> int:
        """Each device's contribution to it."""
        return sum(tensor_bytes(value.type) for value in self.op.operands)


@dataclass(frozen=True, eq=False, slots=True)
class _JoinedSources:
    """The sources of a value; values share them, so all take linear space.

    Attributes:
      parts: positions of results, and the sources of other values.
    """

    parts: tuple[int | _JoinedSources, ...]


def reductions_behind(loop: ir.Operation) -> list[ReductionBehind]:
    """The reductions that read a loop's results, directly or through ops without regions."""
    read: dict[ir.Value, int | _JoinedSources] = {result: position for position, result in enumerate(loop.results)}
    found: list[ReductionBehind] = []
    for reader in _behind(loop):
        sources = tuple({id(read[operand]): read[operand] for operand in reader.operands if operand in read}.values())
        if reader.name in REDUCING:
            found.append(ReductionBehind(reader, _positions(sources)))
        elif len(reader.regions) == 0:
            joined = sources[0] if len(sources) == 1 else _JoinedSources(sources)
            read.update(dict.fromkeys(reader.results, joined))
    return found


def _positions(sources: Iterable[int | _JoinedSources]) -> frozenset[int]:
    """The positions among some sources, and among theirs."""
    found = reachable(sources, lambda each: () if isinstance(each, int) else each.parts, key=id)
    return frozenset(each for each in found if isinstance(each, int))


def _behind(op: ir.Operation) -> list[ir.Operation]:
    """The ops of a block that read an op's results through ops without regions, each after those it reads."""
    order: list[ir.Operation] = []
    seen = {op_key(op)}
    path = [(op, _readers(op))]
    # Ends: an op is entered once.
    while path:
        reader = next((each for each in path[-1][1] if op_key(each) not in seen), None)
        if reader is None:
            order.append(path.pop()[0])
        else:
            seen.add(op_key(reader))
            path.append((reader, _readers(reader)))
    return order[-2::-1]


def _readers(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops of its block that read an op's results."""
    return (reader for result in op.results for reader, _ in users(result)
            if reader.block == op.block and (reader.name in REDUCING or len(reader.regions) == 0))


@dataclass(frozen=True)
class PeelingGain:
    """The gain for one loop.

    Attributes:
      loop_s: seconds of the whole loop.
      reductions_s: seconds of the reductions after it, with one call for all of equal kind and groups.
      hidden_s: seconds of them that run concurrently with the copy.
    """

    loop_s: float
    reductions_s: float
    hidden_s: float


def gain(loop: ir.Operation, reductions: Iterable[ReductionBehind], model: OverlapModel, *, sunk: bool) -> PeelingGain:
    """The gain of peeling.

    During the copy, each reduction has its own call, or one for each row if it goes into a layer loop. After the loop,
    all are ready at once and share calls. The hidden share counts relative to the time of those, so latencies that the
    copy adds do not count as gain.

    Args:
      loop: the loop.
      reductions: after it.
      model: the model of the module.
      sunk: whether reductions of what an inner loop stacks go into that loop, as ``sink-reductions`` does.
    """
    behind = list(reductions)
    copy = _LastIteration(Loop(loop), model, sunk=sunk)
    alone = block_time(copy.tasks).seconds
    calls = [call for each in behind for call in copy.calls(each)]
    took = sum(call.seconds for call in calls)
    exposed = block_time([*copy.tasks, *calls]).seconds - alone
    shared = model.together(each.op for each in behind)
    share = 1 - max(0.0, exposed) / took if took else 0.0
    return PeelingGain(alone * (trip_count(loop) or ASSUMED_TRIPS), shared, shared * max(0.0, share))


class _LastIteration:
    """The copy of the last iteration as tasks.

    Args:
      loop: the loop.
      model: the model of the module.
      sunk: whether rows that an inner loop stacks are final one by one.

    Attributes:
      tasks: the tasks of the body. A loop that stacks rows has one task for each row.
    """

    def __init__(self, loop: Loop, model: OverlapModel, *, sunk: bool) -> None:
        self.loop, self.model = loop, model
        self.tasks: list[StreamTask] = []
        self._stacks: dict[int, frozenset[int]] = {}
        self._first: dict[int, int] = {}
        ops = [each.operation for each in loop.body.operations]
        last: list[int] = []
        for op, task in zip(ops, model.tasks(ops), strict=True):
            self._first[op_key(op)] = len(self.tasks)
            stacks = row_stacks(Loop(op)) if sunk and op.name == "stablehlo.while" else ()
            self._stacks[op_key(op)] = frozenset(stacks)
            rows = min(trip_count(op) or 1, _MOST_ROWS) if stacks else 1
            after = tuple(last[source] for source in task.after)
            for _ in range(rows):
                self.tasks.append(replace(task, seconds=task.seconds / rows, after=after))
                after = (len(self.tasks) - 1,)
            last.append(len(self.tasks) - 1)
        self._last = {op_key(op): place for op, place in zip(ops, last, strict=True)}

    def calls(self, reduction: ReductionBehind) -> list[StreamTask]:
        """A reduction as a transfer, or as one per row if it goes into an inner loop."""
        makers = self._makers([self.loop.yields[slot] for slot in reduction.slots])
        stacked = next((op_key(op) for op, position in makers if position in self._stacks[op_key(op)]), None)
        if stacked is None:
            ends = (defining_op(self.loop.yields[slot]) for slot in reduction.slots)
            after = {self._last[op_key(op)] for op in ends if op is not None and op_key(op) in self._last}
            return [self.model.transfer(reduction.op, self.model.collective(reduction.op), sorted(after))]
        others = tuple(self._last[op_key(op)] for op, _ in makers if op_key(op) != stacked)
        rows = range(self._first[stacked], self._last[stacked] + 1)
        each = self.model.together([reduction.op], 1 / len(rows))
        return [self.model.transfer(reduction.op, each, (*others, row)) for row in rows]

    def _makers(self, values: list[ir.Value]) -> list[tuple[ir.Operation, int]]:
        """The kernels that values are computed from through fused ops, and which of their results."""
        found: dict[tuple[int, int], tuple[ir.Operation, int]] = {}
        seen, pending = set[int](), list(values)
        while pending:  # Ends: the operands of an op are added once.
            value = pending.pop()
            op = defining_op(value)
            if op is None or op_key(op) not in self._last:
                continue
            if op.name in KERNELS or op.name in COLLECTIVES:
                position = ir.OpResult(value).result_number
                found[op_key(op), position] = op, position
            elif op_key(op) not in seen:
                seen.add(op_key(op))
                pending += op.operands
        return list(found.values())
