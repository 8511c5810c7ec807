"""peel-last-micro-batch: the last iteration of an accumulation loop runs behind the loop, beside the reductions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.cost.compute_clock import ComputeClock
from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.collectives import COLLECTIVES, REDUCING, TABLE
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, ancestors, defining_op, nested_ops, terminator
from hlorewrite.passes.common.pass_remarks import tell
from hlorewrite.passes.common.shard_index import scalar_behind
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.spmd.constants import constant_attribute
from hlorewrite.spmd.groups import device_count, groups_of
from hlorewrite.spmd.loops import Loop, constant_integer, counter_step, trip_count
from hlorewrite.spmd.types import element_count, tensor_bytes

PEELED = "hlorewrite.peeled"
"""A unit attribute of loops that a second run leaves alone."""
_HANDLE = re.compile(r"handle = (\d+)")
_PURE = ("stablehlo.", "chlo.")
_EFFECTS = ("custom_call", "send", "recv", "infeed", "outfeed", "rng", "rng_bit_generator", "composite")


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
        changed = False
        for op, reductions in found:
            reason = _refusal(op)
            if reason:
                tell(ctx, "blocked", self.name, f"its last iteration stays in the loop: {reason}", view, op)
            elif self._pays(op, reductions, view, ctx):
                _peel(op, ctx.editor(module, self.name), view)
                ctx.count("loops peeled")
                changed = True
        return changed

    def _pays(self, op: ir.Operation, reductions: Mapping[ir.Operation, set[int]], view: View, ctx: PassContext
              ) -> bool:
        """Whether the copy hides a share of the loop's time that is worth it."""
        times = CollectiveTimes(self.topology or ctx.topology, device_count(view) or 1)
        clock, trips = ComputeClock(view, times.topology), trip_count(op) or 1
        calls = [(_final(op, slots, clock), _seconds(reduction, times, view))
                 for reduction, slots in reductions.items()]
        whole, seconds = clock.seconds(op), sum(took for _, took in calls)
        hidden = _hidden(calls, whole / trips)
        bytes_ = sum(tensor_bytes(reduction.operands[0].type) for reduction in reductions)
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


def _final(op: ir.Operation, slots: Iterable[int], clock: ComputeClock) -> float:
    """Seconds from the start of an iteration until the last kernel that makes some of its results is done.

    What an inner loop stacks is final when that loop is over.
    """
    loop = Loop(op)
    done, seconds = 0.0, dict[int, float]()
    kernels = {op_key(kernel) for kernel in clock.kernels(loop.body)}
    for inner in (each.operation for each in loop.body.operations):
        if op_key(inner) in kernels:
            done += clock.seconds(inner)
            seconds[op_key(inner)] = done
    pending, seen, latest = [loop.yields[slot] for slot in slots], set[int](), 0.0
    # Ends: an op is followed once.
    while pending:
        made = defining_op(pending.pop())
        if made is None or op_key(made) in seen or made.block != loop.body:
            continue
        seen.add(op_key(made))
        if op_key(made) in seconds:
            latest = max(latest, seconds[op_key(made)])
        else:
            pending += list(made.operands)
    return latest


def _reductions_behind(op: ir.Operation) -> dict[ir.Operation, set[int]]:
    """The reductions in a loop's block that read its results, directly or by way of ops without regions.

    Each with the positions of the results it reads.
    """
    found: dict[ir.Operation, set[int]] = {}
    for position, result in enumerate(op.results):
        pending, seen = [result], set[ir.Value]()
        # Ends: a value is followed once.
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            for reader in (use.owner.operation for use in value.uses):
                if reader.block != op.block:
                    continue
                if reader.name in REDUCING:
                    found.setdefault(reader, set()).add(position)
                elif len(reader.regions) == 0:
                    pending += list(reader.results)
    return found


def _refusal(op: ir.Operation) -> str:
    """Why the last iteration cannot be told from the others; empty when it can."""
    trips, loop = trip_count(op), Loop(op)
    if trips is None:
        return "it is not known how often it runs"
    if trips < 2:
        return f"it runs {'once' if trips else 'not at all'}"
    for inner in (view.operation for view in loop.condition.operations):
        if inner.name in COLLECTIVES or not inner.name.startswith(_PURE) or inner.name.endswith(_EFFECTS):
            return f"its condition runs {inner.name}, once more than the body"
    return ""


# ---- the rewrite


def _peel(op: ir.Operation, editor: Editor, view: View) -> None:
    """Lowers the bound by one step, and puts a copy of the body behind the loop."""
    loop = Loop(op)
    readers = [[(use.owner.operation, use.operand_number) for use in result.uses] for result in op.results]
    _lower_bound(loop, editor)
    _mark(op, editor)
    barrier = _behind(op, editor)
    mapping: dict[ir.Value, ir.Value] = dict(zip(loop.body.arguments, barrier.results, strict=True))
    channels = _Channels(view, editor)
    anchor = barrier
    for inner in [each.operation for each in loop.body.operations][:-1]:
        copy = editor.clone_at(inner, ir.InsertionPoint.after(anchor), mapping)
        mapping.update(zip(inner.results, copy.results, strict=True))
        channels.renew(copy)
        if copy.name == "stablehlo.while":
            _mark(copy, editor)
            _start_behind(copy, barrier, editor)
        anchor = copy
    ends = [mapping.get(value, value) for value in terminator(loop.body).operands]
    for uses, end in zip(readers, ends, strict=True):
        for reader, number in uses:
            editor.set_operand(reader, number, end)


def _behind(op: ir.Operation, editor: Editor) -> ir.Operation:
    """The results of a loop as values that XLA does not compute before it: what the copy reads of other iterations may be
    constant or the same in all, and a forward pass in front of the loop keeps its activations through all of it.
    """
    return editor.create("stablehlo.optimization_barrier", list(op.results), [result.type for result in op.results],
                         location=op.location, at=ir.InsertionPoint.after(op))


def _start_behind(copy: ir.Operation, barrier: ir.Operation, editor: Editor) -> None:
    """What a copied inner loop fills is filled after the outer loop: a buffer of zeros needs nothing, and XLA would make it
    in front of that loop and keep it through all of it.
    """
    smallest = min(barrier.results, key=lambda result: tensor_bytes(result.type))
    behind: dict[tuple[str, str], ir.Value] = {}
    for position, operand in enumerate(copy.operands):
        maker = defining_op(operand if element_count(operand.type) == 1 else scalar_behind(operand))
        type_ = operand.type
        if maker is None or element_count(type_) < 2 or (attribute := constant_attribute(maker)) is None \
                or not attribute.is_splat:
            continue
        number = attribute.get_splat_value()
        element = ir.RankedTensorType(type_).element_type
        key = str(element), str(number)
        if key not in behind:
            with editor.context, ir.Location.unknown():
                scalar = ir.RankedTensorType.get([], element)
                value = ir.DenseElementsAttr.get_splat(scalar, number)
            made = editor.create("stablehlo.constant", [], [scalar], attributes={"value": value}, location=copy.location,
                                 before=copy)
            held = editor.create("stablehlo.optimization_barrier", [made.results[0], smallest], [scalar, smallest.type],
                                 location=copy.location, before=copy)
            behind[key] = held.results[0]
        with editor.context:
            dims: ir.Attribute = ir.DenseI64ArrayAttr.get([])
        filled = editor.create("stablehlo.broadcast_in_dim", [behind[key]], [type_], attributes={"broadcast_dimensions": dims},
                               location=copy.location, before=copy)
        editor.set_operand(copy, position, filled.results[0])


def _mark(loop: ir.Operation, editor: Editor) -> None:
    """Says that a loop is done with: its last iteration stands behind it, or it is part of such an iteration."""
    with loop.context:
        editor.set_attribute(loop, PEELED, ir.UnitAttr.get())


def _lower_bound(loop: Loop, editor: Editor) -> None:
    """``i < bound`` becomes ``i < bound - step``, and so for each other comparison: one iteration fewer."""
    compare = defining_op(loop.predicate)
    assert compare is not None
    side = 1 if isinstance(compare.operands[0], ir.BlockArgument) and _steps(loop, compare.operands[0]) else 0
    counter, bound = compare.operands[1 - side], compare.operands[side]
    step = counter_step(loop, ir.BlockArgument(counter).arg_number)
    held = bound if not isinstance(bound, ir.BlockArgument) else loop.op.operands[ir.BlockArgument(bound).arg_number]
    number = constant_integer(held)
    assert step is not None and number is not None
    type_ = ir.RankedTensorType(bound.type)
    with editor.context:
        value = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(type_.element_type, number - step))
    lower = editor.create("stablehlo.constant", [], [type_], attributes={"value": value}, location=compare.location,
                          before=compare)
    editor.set_operand(compare, side, lower.results[0])


def _steps(loop: Loop, value: ir.Value) -> bool:
    return counter_step(loop, ir.BlockArgument(value).arg_number) is not None


class _Channels:
    """Channel handles that no op of a module has; equal ones of a copy stay equal, as send and recv need."""

    def __init__(self, view: View, editor: Editor) -> None:
        self.editor = editor
        self.next = 1 + max((_handle(op) for op in nested_ops(view.module.operation)), default=0)
        self.renamed: dict[str, ir.Attribute] = {}

    def renew(self, copy: ir.Operation) -> None:
        """Gives a copy, and what stands in it, handles of its own."""
        for op in nested_ops(copy):
            if not _handle(op):
                continue
            text = str(op.attributes["channel_handle"])
            if text not in self.renamed:
                with self.editor.context:
                    self.renamed[text] = ir.Attribute.parse(_HANDLE.sub(f"handle = {self.next}", text))
                self.next += 1
            self.editor.set_attribute(op, "channel_handle", self.renamed[text])


def _handle(op: ir.Operation) -> int:
    found = _HANDLE.search(str(op.attributes["channel_handle"])) if "channel_handle" in op.attributes else None
    return int(found[1]) if found else 0
