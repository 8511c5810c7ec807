"""What a copy of the last iteration hides of the reductions after a loop, by the cost model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.collectives import REDUCING
from hlorewrite.ir.types import tensor_bytes
from hlorewrite.ir.view import defining_op, users
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.common.stacked_rows import row_stacks
from hlorewrite.spmd.executions import ASSUMED_TRIPS
from hlorewrite.spmd.loops import Loop, trip_count


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
        """What each device gives to it."""
        return sum(tensor_bytes(value.type) for value in self.op.operands)


@dataclass(frozen=True, eq=False, slots=True)
class _JoinedSources:
    """What a value of several sources is made from; values share their sources, so all of them take linear space.

    Attributes:
      parts: positions of results, and the sources of other values.
    """

    parts: tuple[int | _JoinedSources, ...]


def reductions_behind(loop: ir.Operation) -> list[ReductionBehind]:
    """The reductions that read a loop's results, directly or by way of ops without regions."""
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
    found, left = set[int](), list(sources)
    seen = set(map(id, left))
    # Ends: each source is visited once.
    while left:
        each = left.pop()
        if isinstance(each, int):
            found.add(each)
            continue
        new = [source for source in each.parts if id(source) not in seen]
        seen.update(map(id, new))
        left += new
    return frozenset(found)


def _behind(op: ir.Operation) -> list[ir.Operation]:
    """The ops of a block that read what an op makes, by way of ops without regions, each after those it reads."""
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
    """The ops of its block that an op's results go on to."""
    return (reader for result in op.results for reader, _ in users(result)
            if reader.block == op.block and (reader.name in REDUCING or len(reader.regions) == 0))


@dataclass(frozen=True)
class PeelingGain:
    """What one loop would gain.

    Attributes:
      loop_s: seconds of the whole loop.
      reductions_s: seconds of the reductions after it, those of a kind and of equal groups in one call.
      hidden_s: seconds of them that run concurrently with the copy.
    """

    loop_s: float
    reductions_s: float
    hidden_s: float


def gain(loop: ir.Operation, reductions: Iterable[ReductionBehind], model: OverlapModel, *, sunk: bool) -> PeelingGain:
    """What peeling hides.

    Next to the copy each reduction has a call of its own, and one for each row where it goes into a layer loop. After
    the loop all are ready at once and share calls, so the share that is hidden counts of the time of those: latencies
    that the copy adds do not count as gain.

    Args:
      loop: the loop.
      reductions: after it.
      model: of the module.
      sunk: whether reductions of what an inner loop stacks go into that loop, as ``sink-reductions`` does.
    """
    behind = list(reductions)
    whole = model.clock.seconds(loop)
    times = _IterationTimes(Loop(loop), model, sunk=sunk)
    calls = [call for each in behind for call in times.calls(each)]
    shared = model.together(each.op for each in behind)
    iteration = whole / (trip_count(loop) or ASSUMED_TRIPS)
    return PeelingGain(whole, shared, shared * _hidden_share(calls, iteration))


def _hidden_share(calls: Sequence[tuple[float, float]], iteration: float) -> float:
    """The share of calls that runs concurrently with an iteration: one by one, each when what it reads is final.

    Args:
      calls: when each may start, from the start of the iteration, and how long it takes, seconds.
      iteration: seconds of the iteration.
    """
    free = 0.0
    for final, took in sorted(calls):
        free = max(free, final) + took
    whole = sum(took for _, took in calls)
    return 1 - max(0.0, free - iteration) / whole if whole else 0.0


@dataclass(frozen=True)
class _Final:
    """When a value of an iteration is final.

    Attributes:
      seconds: from the start of the iteration until the last kernel that makes some of it is done, except
        for loops that stack it.
      stacked: the loop that stacks it and the number of its rows; None where none does.
    """

    seconds: float = 0.0
    stacked: tuple[ir.Operation, int] | None = None

    def with_other(self, other: _Final) -> _Final:
        """When both are final."""
        return _Final(max(self.seconds, other.seconds), self.stacked or other.stacked)


class _IterationTimes:
    """When the values of an iteration are final, its kernels running in the order of the program.

    Args:
      loop: the loop.
      model: of the module.
      sunk: whether rows that an inner loop stacks are final one by one.
    """

    def __init__(self, loop: Loop, model: OverlapModel, *, sunk: bool) -> None:
        self.loop = loop
        self.model = model
        self.sunk = sunk
        self._ends = self._prefix_sums()
        self._finals: dict[ir.Value, _Final] = {}
        self._stacks: dict[int, frozenset[int]] = {}

    def calls(self, reduction: ReductionBehind) -> list[tuple[float, float]]:
        """(earliest start, seconds) of a reduction, or of its parts where it goes into an inner loop."""
        final = _Final()
        for slot in reduction.slots:
            final = final.with_other(self._final(self.loop.yields[slot]))
        if final.stacked is None:
            return [(final.seconds, self.model.collective(reduction.op))]
        op, rows = final.stacked
        end, row = self._ends[op_key(op)], self.model.clock.seconds(op) / rows
        each = self.model.together([reduction.op], 1 / rows)
        return [(max(final.seconds, end - row * (rows - 1 - number)), each) for number in range(rows)]

    def _prefix_sums(self) -> Mapping[int, float]:
        kernels = {op_key(kernel) for kernel in self.model.clock.kernels(self.loop.body)}
        done, ends = 0.0, dict[int, float]()
        for inner in (each.operation for each in self.loop.body.operations):
            if op_key(inner) in kernels:
                done += self.model.clock.seconds(inner)
                ends[op_key(inner)] = done
        return ends

    def _final(self, value: ir.Value) -> _Final:
        """When a value is final; what is found for one is kept."""
        stack = [value]
        # Ends: a value follows only from values before it, and becomes known once.
        while stack:
            current = stack[-1]
            waiting = [operand for operand in self._made_from(current) if operand not in self._finals]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            self._finals.setdefault(current, self._by_itself(current))
        return self._finals[value]

    def _made_from(self, value: ir.Value) -> list[ir.Value]:
        """What a value is computed from, at once, when its operands are there."""
        op = defining_op(value)
        return [] if op is None or op.block != self.loop.body or op_key(op) in self._ends else list(op.operands)

    def _by_itself(self, value: ir.Value) -> _Final:
        op = defining_op(value)
        if op is not None and op_key(op) in self._ends:
            rows = self._rows(op, ir.OpResult(value).result_number)
            return _Final(0.0, (op, rows)) if rows else _Final(self._ends[op_key(op)])
        final = _Final()
        for operand in self._made_from(value):
            final = final.with_other(self._finals[operand])
        return final

    def _rows(self, op: ir.Operation, position: int) -> int:
        """How many rows an inner loop stacks at a position; 0 where it does not, or where that does not count."""
        if not self.sunk or op.name != "stablehlo.while":
            return 0
        if op_key(op) not in self._stacks:
            self._stacks[op_key(op)] = frozenset(row_stacks(Loop(op)))
        return (trip_count(op) or 0) if position in self._stacks[op_key(op)] else 0
