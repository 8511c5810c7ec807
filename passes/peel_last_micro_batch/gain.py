"""What a copy of the last iteration hides of the reductions behind a loop, by the cost model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.collectives import REDUCING
from hlorewrite.ir.view import defining_op, users
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.common.stacked_rows import row_stacks
from hlorewrite.spmd.loops import Loop, trip_count
from hlorewrite.spmd.types import tensor_bytes


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


def reductions_behind(loop: ir.Operation) -> list[ReductionBehind]:
    """The reductions that read a loop's results, directly or by way of ops without regions."""
    found: dict[int, tuple[ir.Operation, set[int]]] = {}
    for position, result in enumerate(loop.results):
        pending, seen = [result], set[ir.Value]()
        # Ends: a value is followed once.
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            for reader, _ in users(value):
                if reader.block != loop.block:
                    continue
                if reader.name in REDUCING:
                    found.setdefault(op_key(reader), (reader, set()))[1].add(position)
                elif len(reader.regions) == 0:
                    pending += list(reader.results)
    return [ReductionBehind(op, frozenset(slots)) for op, slots in found.values()]


@dataclass(frozen=True)
class PeelingGain:
    """What one loop would gain.

    Attributes:
      loop_s: seconds of the whole loop.
      reductions_s: seconds of the reductions behind it.
      hidden_s: seconds of them that run beside the copy.
    """

    loop_s: float
    reductions_s: float
    hidden_s: float


def gain(loop: ir.Operation, reductions: Iterable[ReductionBehind], model: OverlapModel, *, sunk: bool) -> PeelingGain:
    """What peeling hides.

    Args:
      loop: the loop.
      reductions: behind it.
      model: of the module.
      sunk: whether reductions of what an inner loop stacks go into that loop, as ``sink-reductions`` does.
    """
    whole = model.clock.seconds(loop)
    times = _IterationTimes(Loop(loop), model)
    calls = [call for each in reductions for call in times.calls(each, sunk=sunk)]
    return PeelingGain(whole, sum(took for _, took in calls), _hidden(calls, whole / (trip_count(loop) or 1)))


def _hidden(calls: Sequence[tuple[float, float]], iteration: float) -> float:
    """Seconds of calls that run beside an iteration: one after the other, each when what it reads is final.

    Args:
      calls: when each may start, from the start of the iteration, and how long it takes, seconds.
      iteration: seconds of the iteration.
    """
    free = 0.0
    for final, took in sorted(calls):
        free = max(free, final) + took
    return sum(took for _, took in calls) - max(0.0, free - iteration)


class _IterationTimes:
    """When the values of an iteration are final, its kernels running in the order of the program.

    Args:
      loop: the loop.
      model: of the module.
    """

    def __init__(self, loop: Loop, model: OverlapModel) -> None:
        self.loop = loop
        self.model = model
        self._ends = self._prefix_sums()

    def calls(self, reduction: ReductionBehind, *, sunk: bool) -> list[tuple[float, float]]:
        """(earliest start, seconds) of a reduction, or of its parts where it goes into an inner loop."""
        final, stacked = 0.0, None
        for value in self._made_by_kernels(reduction.slots):
            op = ir.OpResult(value).owner.operation
            rows = self._rows(op, ir.OpResult(value).result_number) if sunk else 0
            if rows:
                stacked = op, rows
            else:
                final = max(final, self._ends[op_key(op)])
        if stacked is None:
            return [(final, self.model.collective(reduction.op))]
        op, rows = stacked
        end, row = self._ends[op_key(op)], self.model.clock.seconds(op) / rows
        each = self.model.together([reduction.op], 1 / rows)
        return [(max(final, end - row * (rows - 1 - number)), each) for number in range(rows)]

    def _prefix_sums(self) -> Mapping[int, float]:
        kernels = {op_key(kernel) for kernel in self.model.clock.kernels(self.loop.body)}
        done, ends = 0.0, dict[int, float]()
        for inner in (each.operation for each in self.loop.body.operations):
            if op_key(inner) in kernels:
                done += self.model.clock.seconds(inner)
                ends[op_key(inner)] = done
        return ends

    def _made_by_kernels(self, slots: Iterable[int]) -> list[ir.Value]:
        """The values that kernels of the body make and from which the next carried values are computed at once."""
        pending, seen, found = [self.loop.yields[slot] for slot in slots], set[ir.Value](), list[ir.Value]()
        # Ends: a value is followed once.
        while pending:
            value = pending.pop()
            made = defining_op(value)
            if made is None or value in seen or made.block != self.loop.body:
                continue
            seen.add(value)
            if op_key(made) in self._ends:
                found.append(value)
            else:
                pending += list(made.operands)
        return found

    def _rows(self, op: ir.Operation, position: int) -> int:
        """How many rows an inner loop stacks at a position; 0 where it does not."""
        if op.name != "stablehlo.while":
            return 0
        return (trip_count(op) or 0) if position in row_stacks(Loop(op)) else 0
