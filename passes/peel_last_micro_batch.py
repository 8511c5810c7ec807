"""peel-last-micro-batch: the last iteration of an accumulation loop runs behind the loop, beside the reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.cost.compute_clock import ComputeClock
from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.channels import channel_number, renumbered
from hlorewrite.ir.collectives import CHANNEL, COLLECTIVES, REDUCING, TABLE
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.inline import contains_any
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, ancestors, defining_op, nested_ops, terminator
from hlorewrite.passes.common.block_graph import EFFECTS
from hlorewrite.passes.common.pass_remarks import tell
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.spmd.groups import device_count, groups_of
from hlorewrite.spmd.loops import Loop, counter_of, trip_count
from hlorewrite.spmd.types import tensor_bytes

PEELED = "hlorewrite.peeled"
"""A unit attribute of loops that a second run leaves alone."""
_PURE_DIALECTS = ("stablehlo.", "chlo.")


@dataclass(frozen=True)
class PeelLastMicroBatch(Pass):
    """Runs the last iteration of a loop behind it when reductions of its results follow.

    A reduction behind an accumulation loop has nothing to run beside. In a copy of the last iteration each gradient is
    final as soon as its own backward op is done, so a reduction ``AR(acc + g)`` depends on that gradient alone and can
    run beside the rest of the backward pass, as DDP and Megatron do by hand. With ``f`` the body and m iterations,

        while^m(f)(x) = f(while^(m-1)(f)(x)),

    so values stay bit for bit: the order of the local sums is the same. Each collective of the copy has a channel
    handle of its own.

    Legal when the loop is counted: its counter starts, steps and ends at constants, the count is two or more, and the
    condition computes nothing else that has effects. The body then runs equally often, and in the same order. Pays when
    what the copy hides is at least ``min_gain`` of the loop by the cost model. Where the layers are a loop within the
    body, all gradients are final when that is over, and the copy hides nothing.

    Attributes:
      min_gain: the least share of the loop's time that the copy has to hide.
      topology: the cluster to estimate times for; by default the one the run names, else servers of eight H100.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> PeelLastMicroBatch().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "peel-last-micro-batch"
    min_gain: float = 0.01
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; tells whether it changed."""
        view = ctx.view(module)
        loops = [op for op in view.ops("stablehlo.while") if PEELED not in op.attributes
                 and not any(outer.name == "stablehlo.while" for outer in ancestors(op))]
        found = [(op, reductions) for op in loops if (reductions := _reductions_behind(op))]
        if not found:
            return False
        times = CollectiveTimes(self.topology or ctx.topology, device_count(view) or 1)
        clock = ComputeClock(view, times.topology)  # peeling one loop leaves the others as they are
        acts, peeler = contains_any((*EFFECTS, *COLLECTIVES), view), _Peeler(ctx.editor(module, self.name), view)
        changed = False
        for op, reductions in found:
            reason = _refusal(op, view, acts)
            if reason:
                tell(ctx, "blocked", self.name, f"its last iteration stays in the loop: {reason}", view, op)
            elif self._pays(op, reductions, view, ctx, times, clock):
                peeler.peel(op)
                ctx.count("loops peeled")
                changed = True
        return changed

    def _pays(self, op: ir.Operation, reductions: Sequence[_ReductionBehind], view: View, ctx: PassContext,
              times: CollectiveTimes, clock: ComputeClock) -> bool:
        """Whether the copy hides a share of the loop's time that is worth it."""
        trips, finals = trip_count(op) or 1, _Finals(op, clock)
        calls = [(finals.of(each.slots), _seconds(each.op, times, view)) for each in reductions]
        whole, seconds = clock.seconds(op), sum(took for _, took in calls)
        hidden = _hidden(calls, whole / trips)
        bytes_ = sum(tensor_bytes(each.op.operands[0].type) for each in reductions)
        what = (f"{len(calls)} reduction{'s' if len(calls) > 1 else ''} of {bytes_} bytes behind it take "
                f"{seconds * 1e6:.0f} us, of which its copy hides {hidden * 1e6:.0f} us, by the model of "
                f"{times.topology.spec}")
        if hidden < self.min_gain * whole and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"its last iteration stays in the loop: {what}", view, op)
            return False
        tell(ctx, "applied", self.name, f"the last of {trips} iterations runs behind the loop: {what}", view, op)
        return True


def _seconds(op: ir.Operation, times: CollectiveTimes, view: View) -> float:
    groups = groups_of(op, view)
    if isinstance(groups, str):
        return 0.0
    kind = next(row.kind for row in TABLE if row.op == op.name)
    return times.seconds(kind, sum(tensor_bytes(value.type) for value in op.operands), groups.rows)


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


class _Finals:
    """When what an iteration of a loop yields is final: when the last kernel that makes some of it is done.

    What an inner loop stacks is final when that loop is over.

    Args:
      op: the loop.
      clock: how long kernels take.
    """

    def __init__(self, op: ir.Operation, clock: ComputeClock) -> None:
        self.loop = Loop(op)
        self._seconds: dict[int, float] = {}
        kernels, done = {op_key(kernel) for kernel in clock.kernels(self.loop.body)}, 0.0
        for inner in (each.operation for each in self.loop.body.operations):
            if op_key(inner) in kernels:
                done += clock.seconds(inner)
                self._seconds[op_key(inner)] = done

    def of(self, slots: Iterable[int]) -> float:
        """Seconds from the start of an iteration until some of its results are final."""
        return max((self._made(self.loop.yields[slot]) for slot in slots), default=0.0)

    def _made(self, value: ir.Value) -> float:
        """The same for a value of the body; what is found for an op is kept."""
        root = defining_op(value)
        stack = [] if root is None or root.block != self.loop.body else [root]
        # Ends: an op follows only from ops before it, and becomes known once.
        while stack:
            op = stack[-1]
            makers = [maker for operand in op.operands if (maker := defining_op(operand)) is not None
                      and maker.block == self.loop.body] if op_key(op) not in self._seconds else []
            waiting = [maker for maker in makers if op_key(maker) not in self._seconds]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            self._seconds.setdefault(op_key(op), max((self._seconds[op_key(maker)] for maker in makers), default=0.0))
        return 0.0 if root is None else self._seconds.get(op_key(root), 0.0)


@dataclass(frozen=True)
class _ReductionBehind:
    """A reduction behind a loop, and the positions of the loop's results that it reads."""

    op: ir.Operation
    slots: tuple[int, ...]


def _reductions_behind(op: ir.Operation) -> list[_ReductionBehind]:
    """The reductions in a loop's block that read its results, directly or by way of ops without regions."""
    read: dict[ir.Value, int] = {}  # a bit for each result that a value is made from
    found: dict[int, tuple[ir.Operation, int]] = {}
    for position, result in enumerate(op.results):
        read[result] = 1 << position
    for reader in _behind(op):
        slots = 0
        for operand in reader.operands:
            slots |= read.get(operand, 0)
        if reader.name in REDUCING:
            found[op_key(reader)] = reader, slots
        elif len(reader.regions) == 0:
            read.update(dict.fromkeys(reader.results, slots))
    return [_ReductionBehind(reduction, tuple(position for position in range(len(op.results)) if slots >> position & 1))
            for reduction, slots in found.values()]


def _behind(op: ir.Operation) -> list[ir.Operation]:
    """The ops of a block that read what an op makes, by way of ops without regions, each behind those it reads."""
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
    return (reader for result in op.results for reader in (use.owner.operation for use in result.uses)
            if reader.block == op.block and (reader.name in REDUCING or len(reader.regions) == 0))


def _refusal(op: ir.Operation, view: View, acts: Callable[[ir.Operation], bool]) -> str:
    """Why the last iteration cannot be told from the others; empty when it can.

    Args:
      op: the loop.
      view: the view of the module.
      acts: whether a function holds collectives or ops with effects.
    """
    trips, loop = trip_count(op), Loop(op)
    if trips is None:
        return "it is not known how often it runs"
    if trips < 2:
        return f"it runs {'once' if trips else 'not at all'}"
    for inner in (each for part in loop.condition.operations for each in nested_ops(part.operation)):
        callee = view.callee(inner) if inner.name == "func.call" else None
        known = inner.name.startswith(_PURE_DIALECTS) and inner.name not in (*COLLECTIVES, *EFFECTS)
        if not (known if callee is None else not acts(callee)):
            return f"its condition runs {inner.name}, once more than the body"
    return ""


# ---- the rewrite


class _Peeler:
    """Takes the last iteration out of loops.

    Args:
      editor: the editor of the module.
      view: its view.
    """

    def __init__(self, editor: Editor, view: View) -> None:
        self.editor = editor
        self.next = 1 + max((channel_number(op) for op in nested_ops(view.module.operation)), default=0)

    def peel(self, op: ir.Operation) -> None:
        """Lowers the bound by one step, and puts a copy of the body behind the loop."""
        loop = Loop(op)
        readers = [[(use.owner.operation, use.operand_number) for use in result.uses] for result in op.results]
        _lower_bound(loop, self.editor)
        _mark(op, self.editor)
        mapping: dict[ir.Value, ir.Value] = dict(zip(loop.body.arguments, op.results, strict=True))
        channels: dict[ir.Attribute, ir.Attribute] = {}
        anchor = op
        for inner in [each.operation for each in loop.body.operations][:-1]:
            copy = self.editor.clone_at(inner, ir.InsertionPoint.after(anchor), mapping)
            mapping.update(zip(inner.results, copy.results, strict=True))
            self._renew(copy, channels)
            if copy.name == "stablehlo.while":
                _mark(copy, self.editor)
            anchor = copy
        ends = [mapping.get(value, value) for value in terminator(loop.body).operands]
        for uses, end in zip(readers, ends, strict=True):
            for reader, number in uses:
                self.editor.set_operand(reader, number, end)

    def _renew(self, copy: ir.Operation, renewed: dict[ir.Attribute, ir.Attribute]) -> None:
        """Gives a copy, and what stands in it, channels of its own; equal ones stay equal, as send and recv need."""
        for op in nested_ops(copy):
            if channel_number(op) == 0:
                continue
            old = op.attributes[CHANNEL]
            if old not in renewed:
                renewed[old] = renumbered(op, self.next)
                self.next += 1
            self.editor.set_attribute(op, CHANNEL, renewed[old])


def _mark(loop: ir.Operation, editor: Editor) -> None:
    """Says that a loop is done with: its last iteration stands behind it, or it is part of such an iteration."""
    with loop.context:
        editor.set_attribute(loop, PEELED, ir.UnitAttr.get())


def _lower_bound(loop: Loop, editor: Editor) -> None:
    """``i < bound`` becomes ``i < bound - step``, and so for each other comparison: one iteration fewer."""
    counter = counter_of(loop)
    assert counter is not None
    compare, side = counter.compare, 1 - counter.side
    type_ = ir.RankedTensorType(compare.operands[side].type)
    with editor.context:
        number = ir.IntegerAttr.get(type_.element_type, counter.bound - counter.step)
        value = ir.DenseElementsAttr.get_splat(type_, number)
    lower = editor.create("stablehlo.constant", [], [type_], attributes={"value": value}, location=compare.location,
                          before=compare)
    editor.set_operand(compare, side, lower.results[0])
