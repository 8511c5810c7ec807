"""The order in which the ops of two iterations run, if inner loops of both are to run as one."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from hlorewrite.analysis.loops import LoopCounter, trip_count
from hlorewrite.ir import COLLECTIVES, Loop, defining_op, ir, nested_ops, op_key, terminator, users
from hlorewrite.ir.regions import BARRIER, WHILE
from hlorewrite.ops.table import TERMINATORS, OpClass, ops_of
from hlorewrite.passes.common.stacked_rows import row_stacks

_SHARED = frozenset((WHILE, *COLLECTIVES, *ops_of(OpClass.CONTRACTION)))
"""Ops that run for both iterations at once."""


class Iteration(IntEnum):
    """An iteration of a pair, or both."""

    FIRST = 0
    SECOND = 1
    BOTH = 2


_Node = tuple[int, Iteration]
"""The place of an op in the body, and the iteration it runs for."""


@dataclass
class PairPlan:
    """How two iterations of a loop run as one.

    Attributes:
      counter: the counter of the loop.
      steps: the ops of the body in the order in which they run, each with its iteration. Inner loops, collectives and
        products run for both; an op that runs for the first alone has the same results in both.
      varying: the values of the body that differ between the two iterations.
      positions: the positions of each inner loop, by its key, whose values differ.
      sums: keys of ops that run once for both: what stacks the sum of two rows, and what adds these to a carried sum.
    """

    counter: LoopCounter
    steps: list[tuple[ir.Operation, Iteration]] = field(default_factory=list)
    varying: set[ir.Value] = field(default_factory=set)
    positions: dict[int, list[int]] = field(default_factory=dict)
    sums: set[int] = field(default_factory=set)

    def is_sum(self, value: ir.Value) -> bool:
        """Whether an op that runs once for both iterations makes a value."""
        maker = defining_op(value)
        return maker is not None and op_key(maker) in self.sums


def pair_plan(loop: Loop, counter: LoopCounter) -> PairPlan | str:
    """Plans two iterations of a loop.

    Args:
      loop: the loop.
      counter: its counter.

    Returns:
      The plan; or why there is none, as the end of a sentence about the loop.
    """
    ops = [each.operation for each in loop.body.operations][:-1]
    inner = [op for op in ops if op.name == WHILE]
    plan = _varying(loop, counter, inner)
    # A stack that is the same in both iterations is added twice, as written.
    plan = _varying(loop, counter, [op for op in inner if op_key(op) in plan.positions])
    if any(op_key(each) in plan.positions and (trip_count(each) is None or _is_tested(each, plan))
           for op in ops for each in nested_ops(op)):
        return "how often a loop in it runs may differ between iterations"
    return _ordered(loop, ops, plan)


def reads(op: ir.Operation) -> list[ir.Value]:
    """The values that an op or the ops in its regions read."""
    return [value for inner in nested_ops(op) for value in inner.operands]


def _is_tested(op: ir.Operation, plan: PairPlan) -> bool:
    """Whether the condition of an inner loop reads a position that differs."""
    return any(Loop(op).tests(position) for position in plan.positions[op_key(op)])


# ---- what differs between the iterations


def _varying(loop: Loop, counter: LoopCounter, summing: Iterable[ir.Operation]) -> PairPlan:
    """A plan without an order.

    Args:
      loop: the loop.
      counter: its counter.
      summing: the inner loops that may stack sums of rows.
    """
    plan = PairPlan(counter, sums={op_key(each) for inner in summing for each in _accumulated(loop, inner)})
    pending: list[ir.Value] = [argument for position, argument in enumerate(loop.body.arguments)
                               if not loop.keeps(position)]
    # Ends: a value is added once.
    while pending:
        value = pending.pop()
        if value not in plan.varying:
            plan.varying.add(value)
            for use in value.uses:
                pending += _made_from(use.owner.operation, use.operand_number, loop, plan)
    plan.positions = {key: sorted(set(positions)) for key, positions in plan.positions.items()}
    return plan


def _made_from(op: ir.Operation, position: int, loop: Loop, plan: PairPlan) -> Sequence[ir.Value]:
    """What an op makes of one operand. What a region returns is what the op around it makes."""
    if op_key(op) in plan.sums:
        return ()
    parent = op.parent
    carries = op.name == WHILE or (op.name in TERMINATORS and parent is not None and parent.operation.name == WHILE)
    if not carries:
        around = op if op.name not in TERMINATORS or parent is None else parent.operation
        return [op.results[position]] if op.name == BARRIER else list(around.results)
    inner = Loop(op if op.name == WHILE or parent is None else parent.operation)
    if inner == loop:
        return ()
    counted = op.block == inner.condition  # how often it runs differs, so all that it makes does
    positions = range(len(inner.op.results)) if counted else (position,)
    changing = [each for each in positions if counted or not plan.is_sum(inner.yields[each])]
    plan.positions.setdefault(op_key(inner.op), []).extend(changing)
    return [values[each] for each in changing for values in (inner.body.arguments, inner.op.results)]


def _accumulated(loop: Loop, inner: ir.Operation) -> Iterator[ir.Operation]:
    """The ops that stack rows in an inner loop and those that add the stacks to what the loop carries.

        (sum + stack_i a_i) + stack_i b_i = sum + stack_i (a_i + b_i)

    Nothing else may read the stack, the sum so far, or the sum with it.
    """
    end = terminator(loop.body)
    for stack in row_stacks(Loop(inner)).values():
        readers = users(inner.results[stack.position])
        total = readers[0][0] if len(readers) == 1 else None
        if total is None or total.name != "stablehlo.add" or total.block != loop.body:
            continue
        carried = total.operands[1 - readers[0][1]]
        if not isinstance(carried, ir.BlockArgument) or carried.owner != loop.body:
            continue
        if users(carried) == [(total, 1 - readers[0][1])] and users(total.results[0]) == [(end, carried.arg_number)]:
            yield from (stack.update, total)


# ---- the order


def _ordered(loop: Loop, ops: list[ir.Operation], plan: PairPlan) -> PairPlan | str:
    """Orders ops topologically; those of the two iterations alternate.

    Inner loops, collectives and products are one node for both iterations, so there is no order if the second iteration
    of one needs what the first one computes: then nothing could run concurrently.
    """
    graph = _PairGraph(loop, ops, plan)
    left = {node: len(sources) for node, sources in graph.sources.items()}
    ready = [node for node, count in left.items() if not count]
    heapq.heapify(ready)
    # Ends: each op is taken once.
    while ready:
        node = heapq.heappop(ready)
        plan.steps.append((ops[node[0]], node[1]))
        for reader in graph.readers.get(node, ()):
            left[reader] -= 1
            if not left[reader]:
                heapq.heappush(ready, reader)
    if len(plan.steps) < len(left):
        return "a collective, a product or a loop in it needs what it computes in the iteration before"
    return plan


class _PairGraph:
    """What the ops of two iterations wait for.

    Args:
      loop: the loop.
      ops: the ops of its body.
      plan: what differs between the iterations.

    Attributes:
      sources: the nodes that each node waits for.
      readers: the same edges the other way around.
    """

    def __init__(self, loop: Loop, ops: list[ir.Operation], plan: PairPlan) -> None:
        self.loop = loop
        self._made: dict[ir.Value, int] = {result: place for place, op in enumerate(ops) for result in op.results}
        self._nodes = [_iterations(op, plan) for op in ops]
        self.sources: dict[_Node, set[_Node]] = {}
        self.readers: dict[_Node, list[_Node]] = {}
        for place, op in enumerate(ops):
            for each in self._nodes[place]:
                pair = (Iteration.FIRST, Iteration.SECOND) if each == Iteration.BOTH else (each,)
                sources = self.sources[place, each] = {source for one in pair for source in self._of(op, one)}
                for source in sources:
                    self.readers.setdefault(source, []).append((place, each))

    def _of(self, op: ir.Operation, iteration: Iteration) -> Iterator[_Node]:
        """What an op waits for in one iteration: what the second one carries in is what the first one yields."""
        for value in reads(op):
            made_in = iteration
            if defining_op(value) is None and value.owner == self.loop.body and iteration == Iteration.SECOND:
                value, made_in = self.loop.yields[ir.BlockArgument(value).arg_number], Iteration.FIRST
            place = self._made.get(value)
            if place is not None:
                yield place, made_in if made_in in self._nodes[place] else self._nodes[place][0]


def _iterations(op: ir.Operation, plan: PairPlan) -> tuple[Iteration, ...]:
    """The iterations that an op has nodes for."""
    if not any(result in plan.varying for result in op.results):
        return (Iteration.FIRST,)
    together = any(inner.name in _SHARED for inner in nested_ops(op))
    return (Iteration.BOTH,) if together else (Iteration.FIRST, Iteration.SECOND)
