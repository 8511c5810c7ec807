"""sink-reductions: moves reductions of tensors that a layer loop stacks into that loop, to overlap with other
layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir import ALL_REDUCE, Loop, Module, View, defining_op, ir, op_key, tensor_bytes, terminator, users
from hlorewrite.passes.common.overlap_model import OVERLAPPED, OverlapModel
from hlorewrite.passes.common.pass_support import ROWS, tell, with_inlined
from hlorewrite.passes.common.stacked_rows import row_stacks
from hlorewrite.passes.sink_reductions.emit import sink
from hlorewrite.passes.sink_reductions.find import ELEMENTWISE, Sinking, SinkingFinder
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.timeline.stream_tasks import block_time


@dataclass(frozen=True)
class SinkReductions(Pass):
    """Reduces each layer's gradients in the loop over the layers, instead of all of them after it.

    A scan over layers stacks their gradients, so none is final before the loop is over, and nothing is left to run
    next to their reduction. For elementwise ``f`` between the loop and the reduction,

        AR(f(stack_i g_i, t)) = stack_i AR(f(g_i, t[i])),

    and the stacked tensor starts as ``t`` (the sums of the earlier micro-batches), whose slices it replaces one by one.
    Executed bytes stay as they are; one call becomes as many as there are layers. Each device adds the same numbers in
    the same order.

    Legal when the loop's trip count and the indices it writes at are computed from constants; each slice is written
    exactly once; the stacked tensor has no other reader in the loop and after it none but the ops before the
    reduction, and what these read next to it precedes the loop. Pays when an iteration hides a layer's
    reduction: at least ``min_gain`` of the loop's time by the cost model, given ``rotate-collectives`` after it,
    without which the last gradient of a layer has nothing to overlap with.

    Attributes:
      min_gain: the smallest share of the loop's time to be gained.
      topology: the cluster to estimate times for; by default the one the run names.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> SinkReductions().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "sink-reductions"
    beside_compute: ClassVar[bool] = True
    min_gain: float = 0.01
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        if not ctx.view(module).ops("stablehlo.while"):
            return False
        return with_inlined(module, ctx, ROWS, lambda inlined, view: self._on(inlined, view, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        by_loop: dict[int, list[Sinking]] = {}
        finder = SinkingFinder(view)
        for reduction in view.ops(ALL_REDUCE.op):
            sinking = finder.find(reduction)
            if sinking is not None:
                by_loop.setdefault(op_key(sinking.loop), []).append(sinking)
            elif ctx.wants_missed and (stays := why_not_sunk(reduction)) is not None:
                loop, reason = stays
                tell(ctx, "missed", self.name, f"a reduction of what it stacks stays after it: {reason}", view, loop)
        if not by_loop:
            return False
        model = OverlapModel(view, ctx, self.name, self.topology)
        chosen = [sinkings for sinkings in by_loop.values() if self._pays(sinkings, model, ctx)]
        editor = ctx.editor(module, self.name)
        for sinkings in chosen:
            for sinking in sinkings:
                sink(sinking, editor)
                ctx.count("reductions sunk")
            with editor.context:
                editor.set_attribute(sinkings[0].loop, OVERLAPPED, ir.UnitAttr.get())
        return bool(chosen)

    def _pays(self, sinkings: Sequence[Sinking], model: OverlapModel, ctx: PassContext) -> bool:
        """Whether enough of the reductions of one loop would run concurrently with its iterations."""
        loop, reductions = sinkings[0].loop, [sinking.reduction for sinking in sinkings]
        trips, body = trip_count(loop) or 1, model.tasks([each.operation for each in Loop(loop).body.operations])
        before, each = model.together(reductions), model.together(reductions, 1 / trips)
        alone, beside = block_time(body).seconds, block_time([*body, model.transfer(reductions[0], each)]).seconds
        after = (trips - 1) * (beside - alone) + each  # those of an iteration run concurrently with the next one
        bytes_ = sum(tensor_bytes(reduction.operands[0].type) for reduction in reductions)
        what = (f"reducing {bytes_} bytes in {trips} parts leaves {after * 1e6:.0f} of {before * 1e6:.0f} us exposed, "
                f"according to the model of {model.spec}")
        if before - after <= self.min_gain * trips * alone and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"its reductions stay after it: {what}", model.view, loop)
            return False
        tell(ctx, "applied", self.name, f"{len(reductions)} reductions of what it stacks go into it: {what}",
             model.view, loop)
        return True


# ---- why a reduction of a stacked tensor stays after the loop


_MOST_OPS = 64


def why_not_sunk(reduction: ir.Operation) -> tuple[ir.Operation, str] | None:
    """The loop that stacks a reduction's operand, and why the reduction stays after it.

    Args:
      reduction: an all-reduce that cannot go into a loop.

    Returns:
      (the loop, the reason as the end of a sentence); None when no loop stacks its operand.
    """
    seen: set[int] = set()
    pending = list(reduction.operands)
    read_elsewhere = False
    for value in pending:  # Ends: the operands of an op are added once.
        op = defining_op(value)
        if op is None or op.block != reduction.block:
            continue
        if op.name == "stablehlo.while":
            position = ir.OpResult(value).result_number
            if _writes_rows(Loop(op), position):
                return op, _reason(op, position, read_elsewhere or len(users(value)) > 1)
        elif op.name in ELEMENTWISE and op_key(op) not in seen and len(seen) < _MOST_OPS:
            seen.add(op_key(op))
            read_elsewhere |= len(users(value)) > 1
            pending += op.operands
    return None


def _writes_rows(loop: Loop, position: int) -> bool:
    """Whether a loop writes a part of a carried tensor in each iteration."""
    update = defining_op(loop.yields[position])
    return update is not None and update.name == "stablehlo.dynamic_update_slice" and update.block == loop.body


def _reason(op: ir.Operation, position: int, read_elsewhere: bool) -> str:
    loop = Loop(op)
    if trip_count(op) is None:
        return "its trip count is unknown, so it may not write each row"
    if users(loop.condition.arguments[position]) or any(
            reader != defining_op(loop.yields[position]) and reader != terminator(loop.body)
            for reader, _ in users(loop.body.arguments[position])):
        return "the loop itself reads the tensor it stacks"
    if position not in row_stacks(loop):
        return "it may not write each row exactly once"
    if read_elsewhere:
        return "its stack has another reader after it"
    return "the ops between it and the reduction cannot be computed row by row in it"
