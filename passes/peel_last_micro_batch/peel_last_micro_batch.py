"""peel-last-micro-batch: the last iteration of an accumulation loop runs after the loop, next to the reductions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.block_frequency import ASSUMED_TRIPS
from hlorewrite.analysis.loops import LoopCounter, counter_of, trip_count
from hlorewrite.ir import REDUCING, Effects, Loop, Module, View, ancestors, contains_any, ir, nested_ops, op_key
from hlorewrite.passes.common.loop_copies.copies import ChannelHandles
from hlorewrite.passes.common.overlap_model import OVERLAPPED, OverlapModel
from hlorewrite.passes.common.pass_support import ROWS, tell, with_inlined
from hlorewrite.passes.peel_last_micro_batch.emit import PEELED, inline_once, peel
from hlorewrite.passes.peel_last_micro_batch.gain import ReductionBehind, gain, reductions_behind
from hlorewrite.passes.peel_last_micro_batch.next_condition import NextCondition, next_condition
from hlorewrite.passmanager.base import Pass, PassContext


@dataclass(frozen=True)
class PeelLastMicroBatch(Pass):
    """Runs the last iteration of a loop after the loop, if reductions of its results follow.

    A reduction after an accumulation loop has nothing to overlap with. In a copy of the last iteration each gradient is
    final as soon as its own backward op is done. A reduction ``AR(acc + g)`` then depends on that gradient alone and
    can run concurrently with the rest of the backward pass, as DDP and Megatron do by hand. With ``f`` the body and m
    iterations,

        while^m(f)(x) = f(while^(m-1)(f)(x)),

    so values stay bit for bit: the order of the local sums is the same. Each collective of the copy has a channel
    handle of its own. Barriers keep XLA from beginning the copy before the loop is over, so it needs no memory next to
    that of an iteration.

    Legal when the loop is counted by constants and the condition has no effects: the body then runs equally often, and
    in the same order. A loop with one iteration that contains reductions, or precedes them, is replaced by its body;
    one of none stays. Where start, step or bound are values at run time, the condition must read carried scalars that
    the body computes from such scalars alone, for the loop to end one iteration earlier. The copy then runs in any
    case, and ``select`` drops its results if the loop did not run: legal when the body contains neither effects nor
    collectives, nor loops that may not end. No device waits for another one there, so counts may differ among devices.
    Pays when what the copy hides is at least ``min_gain`` of the loop by the cost model, of 8 iterations where their
    number is not constant. Where the layers are a loop within the
    body, all gradients are final when that is over, and the copy hides nothing, unless ``sink-reductions`` and
    ``rotate-collectives`` follow.

    Attributes:
      min_gain: the smallest share of the loop's time that the copy has to hide.
      sunk: count on ``sink-reductions`` after this pass: reductions of what a layer loop stacks run concurrently with
        it.
      topology: the cluster to estimate times for; by default the one the run names.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> PeelLastMicroBatch().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "peel-last-micro-batch"
    beside_compute: ClassVar[bool] = True
    min_gain: float = 0.01
    sunk: bool = False
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        if not ctx.view(module).ops("stablehlo.while"):
            return False
        if self.sunk:
            return with_inlined(module, ctx, ROWS, lambda inlined, view: self._on(inlined, view, ctx))
        return self._on(module, ctx.view(module), ctx)

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        loops = [op for op in view.ops("stablehlo.while")
                 if PEELED not in op.attributes and OVERLAPPED not in op.attributes
                 and self._is_outermost(op, view, ctx)]
        found = [(op, reductions, _is_single(op)) for op in loops
                 if (reductions := reductions_behind(op)) or (_is_single(op) and _holds_reductions(op, view))]
        if not found:
            return False
        several = any(not single for _, _, single in found)
        model = OverlapModel(view, ctx, self.name, self.topology) if several else None
        chosen = [(op, counting) for op, reductions, _ in found
                  if (counting := self._counting(op, view, ctx)) is not None
                  and (model is None or _is_single(op) or self._pays(op, counting, reductions, model, ctx))]
        editor = ctx.editor(module, self.name)
        channels = ChannelHandles(view, editor)
        for op, counting in chosen:
            if isinstance(counting, LoopCounter) and counting.trips == 1:
                tell(ctx, "applied", self.name, "it runs once, so its body replaces it", view, op)
                inline_once(Loop(op), editor)
            else:
                peel(Loop(op), counting, editor, channels)
            ctx.count("loops peeled")
        return bool(chosen)

    def _is_outermost(self, op: ir.Operation, view: View, ctx: PassContext) -> bool:
        """Whether a loop is in no other one; if not, and reductions follow it there, reports that it stays."""
        around = [outer for outer in ancestors(op) if outer.name == "stablehlo.while"]
        if around and ctx.wants_missed and not any(PEELED in outer.attributes for outer in around) and (
                reductions_behind(op)):
            tell(ctx, "missed", self.name, "its last iteration stays in the loop: the loop is inside another one", view,
                 op)
        return not around

    def _counting(self, op: ir.Operation, view: View, ctx: PassContext) -> LoopCounter | NextCondition | None:
        """How a loop counts, if its last iteration can be separated; reports why it cannot."""
        counting = _how_it_counts(Loop(op), view)
        if not isinstance(counting, str):
            return counting
        tell(ctx, "blocked", self.name, f"its last iteration stays in the loop: {counting}", view, op)
        return None

    def _pays(self, op: ir.Operation, counting: LoopCounter | NextCondition, reductions: Sequence[ReductionBehind],
              model: OverlapModel, ctx: PassContext) -> bool:
        """Whether the copy hides a sufficient share of the loop's time."""
        found = gain(op, reductions, model, sunk=self.sunk)
        what = (f"{len(reductions)} reduction{'s' if len(reductions) > 1 else ''} of "
                f"{sum(each.bytes for each in reductions)} bytes after it take {found.reductions_s * 1e6:.0f} us, of "
                f"which its copy hides {found.hidden_s * 1e6:.0f} us, according to the model of {model.spec}")
        if found.hidden_s < self.min_gain * found.loop_s and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"its last iteration stays in the loop: {what}", model.view, op)
            return False
        which = f"the last of {counting.trips} iterations" if isinstance(counting, LoopCounter) else (
            f"the last of an unknown number of iterations ({ASSUMED_TRIPS} assumed)")
        tell(ctx, "applied", self.name, f"{which} runs after the loop: {what}", model.view, op)
        return True


def _is_single(op: ir.Operation) -> bool:
    """Whether a loop runs once."""
    return trip_count(op) == 1


def _holds_reductions(op: ir.Operation, view: View) -> bool:
    """Whether reductions are in a loop, or in functions that it calls."""
    holds = contains_any(REDUCING, view)
    callees = (view.callee(inner) for inner in nested_ops(op) if inner.name == "func.call")
    return any(inner.name in REDUCING for inner in nested_ops(op)) or any(
        callee is not None and holds(callee) for callee in callees)


def _how_it_counts(loop: Loop, view: View) -> LoopCounter | NextCondition | str:
    """How a loop counts, or why it cannot be peeled."""
    counter = counter_of(loop)
    if counter is not None and counter.trips == 0:
        return "it does not run at all"
    condition = [each.operation for each in loop.condition.operations]
    if name := Effects(view).first(condition, collectives=True):
        return f"its condition runs {name}, once more than the body"
    if counter is not None and counter.trips is not None:
        return counter
    counting = next_condition(loop)
    if counting is None:
        return "its condition depends on a value that its body computes from data"
    return why_not_speculative(loop, view) or counting


# ---- whether a loop's body may run once although the loop itself may not run at all


def why_not_speculative(loop: Loop, view: View) -> str:
    """Why the body may not run speculatively on the values before a loop with no iterations.

    Its effects would be visible, a collective in it would send bytes that the original does not, and a loop in it that
    ends on the values of an iteration need not end on those before the first.

    Args:
      loop: the loop.
      view: the module.

    Returns:
      The reason, as the end of a sentence; empty when it may.
    """
    if any(not isinstance(result.type, ir.RankedTensorType) for result in loop.op.results):
        return "it may not run at all, and it carries a value that is not a tensor"
    body = [each.operation for each in loop.body.operations]
    if name := Effects(view).first(body, collectives=True):
        return f"it may not run at all, and its body runs {name}"
    if any(op.name == "stablehlo.while" and trip_count(op) is None for op in _reached(body, view, set())):
        return "it may not run at all, and it is not known whether a loop in it then ends"
    return ""


def _reached(ops: Iterable[ir.Operation], view: View, seen: set[int]) -> Iterator[ir.Operation]:
    """Ops, with their regions and called functions; ``seen`` contains the functions entered."""
    for op in (inner for each in ops for inner in nested_ops(each)):
        yield op
        callee = view.callee(op) if op.name == "func.call" else None
        if callee is not None and op_key(callee) not in seen:
            seen.add(op_key(callee))
            yield from _reached([callee], view, seen)
