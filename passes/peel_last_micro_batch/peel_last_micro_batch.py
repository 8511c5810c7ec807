"""peel-last-micro-batch: the last iteration of an accumulation loop runs after the loop, next to the reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.ir.binding import ir
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, ancestors
from hlorewrite.passes.common.channel_handles import ChannelHandles
from hlorewrite.passes.common.effects import Effects
from hlorewrite.passes.common.inlined_copy import ROWS, with_inlined
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.common.pass_remarks import tell
from hlorewrite.passes.peel_last_micro_batch.emit import PEELED, peel
from hlorewrite.passes.peel_last_micro_batch.gain import ReductionBehind, gain, reductions_behind
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.spmd.loops import Loop, LoopCounter, counter_of


@dataclass(frozen=True)
class PeelLastMicroBatch(Pass):
    """Runs the last iteration of a loop after it when reductions of its results follow.

    A reduction after an accumulation loop has nothing to overlap with. In a copy of the last iteration each gradient is
    final as soon as its own backward op is done. A reduction ``AR(acc + g)`` then depends on that gradient alone and
    can run concurrently with the rest of the backward pass, as DDP and Megatron do by hand. With ``f`` the body and m
    iterations,

        while^m(f)(x) = f(while^(m-1)(f)(x)),

    so values stay bit for bit: the order of the local sums is the same. Each collective of the copy has a channel
    handle of its own. Barriers keep XLA from beginning the copy before the loop is over, so it needs no memory next to
    that of an iteration.

    Legal when the loop is counted: its counter starts, steps and ends at constants, the count is two or more, and the
    condition computes nothing else that has effects. The body then runs equally often, and in the same order. Pays when
    what the copy hides is at least ``min_gain`` of the loop by the cost model. Where the layers are a loop within the
    body, all gradients are final when that is over, and the copy hides nothing, unless ``sink-reductions`` and
    ``rotate-collectives`` follow.

    Attributes:
      min_gain: the least share of the loop's time that the copy has to hide.
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
        loops = [op for op in view.ops("stablehlo.while") if PEELED not in op.attributes
                 and not any(outer.name == "stablehlo.while" for outer in ancestors(op))]
        found = [(op, reductions) for op in loops if (reductions := reductions_behind(op))]
        if not found:
            return False
        model = OverlapModel(view, ctx, self.name, self.topology)
        chosen = [(op, counter) for op, reductions in found if (counter := self._counter(op, view, ctx)) is not None
                  and self._pays(op, counter, reductions, model, ctx)]
        editor = ctx.editor(module, self.name)
        channels = ChannelHandles(view, editor)
        for op, counter in chosen:
            peel(Loop(op), counter, editor, channels)
            ctx.count("loops peeled")
        return bool(chosen)

    def _counter(self, op: ir.Operation, view: View, ctx: PassContext) -> LoopCounter | None:
        """The counter of a loop whose last iteration can be separated from the others; says why there is none."""
        loop = Loop(op)
        counter = counter_of(loop)
        reason = _refusal(loop, counter, view)
        if not reason:
            return counter
        tell(ctx, "blocked", self.name, f"its last iteration stays in the loop: {reason}", view, op)
        return None

    def _pays(self, op: ir.Operation, counter: LoopCounter, reductions: Sequence[ReductionBehind], model: OverlapModel,
              ctx: PassContext) -> bool:
        """Whether the copy hides a share of the loop's time that is worth it."""
        found = gain(op, reductions, model, sunk=self.sunk)
        what = (f"{len(reductions)} reduction{'s' if len(reductions) > 1 else ''} of "
                f"{sum(each.bytes for each in reductions)} bytes after it take {found.reductions_s * 1e6:.0f} us, of "
                f"which its copy hides {found.hidden_s * 1e6:.0f} us, by the model of {model.spec}")
        if found.hidden_s < self.min_gain * found.loop_s and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"its last iteration stays in the loop: {what}", model.view, op)
            return False
        tell(ctx, "applied", self.name, f"the last of {counter.trips} iterations runs after the loop: {what}",
             model.view, op)
        return True


def _refusal(loop: Loop, counter: LoopCounter | None, view: View) -> str:
    """Why a loop cannot be peeled; empty when it can."""
    if counter is None or counter.trips is None:
        return "it is not known how often it runs"
    if counter.trips < 2:
        return f"it runs {'once' if counter.trips else 'not at all'}"
    condition = [each.operation for each in loop.condition.operations]
    if name := Effects(view).first(condition, collectives=True):
        return f"its condition runs {name}, once more than the body"
    return ""
