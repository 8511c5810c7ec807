"""The order in which the ops of two iterations run, if inner loops of both are to run as one."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir import COLLECTIVES, Loop, defining_op, ir, nested_ops, op_key, terminator, users
from hlorewrite.ir.regions import BARRIER, WHILE
from hlorewrite.passes.common.stacked_rows import row_stacks


class Turn(IntEnum):
    """For which of two iterations an op runs. Inner loops and collectives run for both."""

    FIRST = 0
    SECOND = 1
    BOTH = 2


@dataclass
class PairPlan:
    """How two iterations of a loop run as one.

    Attributes:
      steps: the ops of the body in the order in which they run, each with its turn. An op with a first turn alone has
        the same results in both iterations.
      varying: the values of the body that differ between the two iterations.
      positions: the positions of each inner loop, by its key, whose values differ.
      sums: keys of ops that run once for both: what stacks the sum of two rows, and what adds these to a carried sum.
    """

    steps: list[tuple[ir.Operation, Turn]] = field(default_factory=list)
    varying: set[ir.Value] = field(default_factory=set)
    positions: dict[int, list[int]] = field(default_factory=dict)
    sums: set[int] = field(default_factory=set)

    def is_sum(self, value: ir.Value) -> bool:
        """Whether an op that runs once for both iterations makes a value."""
        maker = defining_op(value)
        return maker is not None and op_key(maker) in self.sums


def pair_plan(loop: Loop) -> PairPlan | str:
    """Plans two iterations of a loop.

    Args:
      loop: the loop.

    Returns:
      The plan; or why there is none, as the end of a sentence about the loop.
    """
    plan = PairPlan(varying={argument for place, argument in enumerate(loop.body.arguments) if not loop.keeps(place)})
    ops = [each.operation for each in loop.body.operations][:-1]
    plan.sums |= {op_key(each) for op in ops if op.name == WHILE for each in _accumulated(loop, op)}
    _spread(ops, plan)
    for op in (inner for each in ops for inner in nested_ops(each) if op_key(inner) in plan.positions):
        if trip_count(op) is None or any(Loop(op).tests(place) for place in plan.positions[op_key(op)]):
            return "how often a loop in it runs may differ between iterations"
    return _ordered(loop, ops, plan)


def reads(op: ir.Operation) -> list[ir.Value]:
    """The values that an op or the ops in its regions read."""
    return [value for inner in nested_ops(op) for value in inner.operands]


def _spread(ops: Iterable[ir.Operation], plan: PairPlan) -> None:
    """Adds the results that differ because something they are computed from does."""
    for op in ops:
        if op_key(op) in plan.sums:
            continue
        if op.name == WHILE:
            _spread_in_loop(op, plan)
        elif op.name == BARRIER:
            plan.varying |= {result for operand, result in zip(op.operands, op.results, strict=True)
                             if operand in plan.varying}
        elif any(value in plan.varying for value in reads(op)):
            plan.varying |= set(op.results)


def _spread_in_loop(op: ir.Operation, plan: PairPlan) -> None:
    loop, known = Loop(op), set[int]()
    found = {place for place, (operand, after) in enumerate(zip(op.operands, loop.yields, strict=True))
             if operand in plan.varying and not plan.is_sum(after)}
    # Ends: each round adds a position.
    while True:
        known |= found
        plan.varying |= {loop.body.arguments[place] for place in known}
        _spread([each.operation for each in loop.body.operations][:-1], plan)
        found = {place for place, value in enumerate(loop.yields) if value in plan.varying} - known
        if not found:
            break
    if known:
        plan.positions[op_key(op)] = sorted(known)
    plan.varying |= {op.results[place] for place in known}


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

    Inner loops and collectives are one node for both iterations, so there is no order if the second iteration of one
    needs what the first one computes: then nothing could run concurrently.
    """
    made: dict[ir.Value, int] = {result: place for place, op in enumerate(ops) for result in op.results}
    turns = [_turns(op, plan) for op in ops]
    waiting: dict[tuple[int, Turn], int] = {}
    behind: dict[tuple[int, Turn], list[tuple[int, Turn]]] = {}
    for place, op in enumerate(ops):
        for turn in turns[place]:
            both = (Turn.FIRST, Turn.SECOND) if turn == Turn.BOTH else (turn,)
            sources = {source for each in both for source in _sources(loop, op, each, made, turns)}
            waiting[place, turn] = len(sources)
            for source in sources:
                behind.setdefault(source, []).append((place, turn))
    ready = [node for node, count in waiting.items() if not count]
    heapq.heapify(ready)
    # Ends: each op is taken once.
    while ready:
        node = heapq.heappop(ready)
        plan.steps.append((ops[node[0]], node[1]))
        for reader in behind.get(node, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    if len(plan.steps) < len(waiting):
        return "a collective, or a loop in it, needs what it computes in the iteration before"
    return plan


def _turns(op: ir.Operation, plan: PairPlan) -> tuple[Turn, ...]:
    if not any(result in plan.varying for result in op.results):
        return (Turn.FIRST,)
    together = op.name == WHILE or any(inner.name in COLLECTIVES for inner in nested_ops(op))
    return (Turn.BOTH,) if together else (Turn.FIRST, Turn.SECOND)


def _sources(loop: Loop, op: ir.Operation, turn: Turn, made: dict[ir.Value, int], turns: list[tuple[Turn, ...]]
             ) -> set[tuple[int, Turn]]:
    """What an op waits for in one iteration."""
    found = set[tuple[int, Turn]]()
    for value in reads(op):
        each = turn
        if defining_op(value) is None and value.owner == loop.body and turn == Turn.SECOND:
            value, each = loop.yields[ir.BlockArgument(value).arg_number], Turn.FIRST
        place = made.get(value)
        if place is not None:
            found.add((place, each if each in turns[place] else turns[place][0]))
    return found
