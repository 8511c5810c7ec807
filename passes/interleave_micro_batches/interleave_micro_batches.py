"""interleave-micro-batches: two iterations of an accumulation loop run as one, layer by layer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.block_frequency import executed_times
from hlorewrite.analysis.loops import counter_of
from hlorewrite.ir import COLLECTIVES, Effects, Loop, Module, View, ancestors, nested_ops, op_key, tensor_bytes
from hlorewrite.ir.regions import WHILE
from hlorewrite.passes.common.block_waits import BlockTimes, waiting
from hlorewrite.passes.common.loop_copies.copies import ChannelHandles
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.common.pass_support import tell, with_inlined
from hlorewrite.passes.interleave_micro_batches.emit import PAIRED, PairEmitter
from hlorewrite.passes.interleave_micro_batches.plan import PairPlan, pair_plan
from hlorewrite.passmanager.base import Pass, PassContext


@dataclass(frozen=True)
class InterleaveMicroBatches(Pass):
    """Runs the iterations of an accumulation loop two at a time, layer by layer.

    With gradient accumulation, one micro-batch after another runs through all layers. Here each layer computes two
    micro-batches before the next layer begins, so the collectives of one run concurrently with the compute of the
    other, forward and backward:

        while^m(f)(x) = while^(m/2)(f . f)(x),    and loops over layers in the two copies of ``f`` run as one.

    Compilers call this unroll-and-jam; DeepSeek's DualPipe and the two-batch overlap of inference engines do it by
    hand. Weights are read, converted and gathered once for both, and the last iteration, which
    ``peel-last-micro-batch`` puts next to the reductions of gradients, is twice as long.

    Each value is computed as before. Only sums of stacked gradients are added in another order, so that the loop over
    layers stacks one tensor instead of two:

        (sum + stack_i a_i) + stack_i b_i = sum + stack_i (a_i + b_i).

    Legal when the loop runs an even number of times, known from constants, and has no effects; what a collective, a
    product or a loop over layers computes in one iteration does not reach the same one in the next iteration; and each
    loop over layers runs equally often in all iterations. Pays if compute waits for the collectives of the loop for at
    least ``min_gain`` of its time. The activations of two micro-batches are in memory at once, which counts against the
    memory of the run.

    Attributes:
      min_gain: the smallest share of the loop's time that compute has to wait; with a negative one, loops run in pairs
        wherever that is legal.
      topology: the cluster to estimate times for; by default the one the run names.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> InterleaveMicroBatches().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "interleave-micro-batches"
    beside_compute: ClassVar[bool] = True
    min_gain: float = 0.01
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        if not ctx.view(module).ops(WHILE):
            return False
        return with_inlined(module, ctx, None, lambda inlined, view: self._on(inlined, view, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        planned = list(self._planned(view, ctx))
        if not planned:
            return False
        times = BlockTimes(OverlapModel(view, ctx, self.name, self.topology))
        chosen = [each for each in planned if self._pays(*each, times, ctx)]
        editor = ctx.editor(module, self.name)
        channels = ChannelHandles(view, editor)
        for loop, plan in chosen:
            PairEmitter(loop, plan, editor, channels).run()
            ctx.count("loops in pairs")
        return bool(chosen)

    def _planned(self, view: View, ctx: PassContext) -> Iterator[tuple[Loop, PairPlan]]:
        """The loops that may run in pairs, with the order of two iterations."""
        for loop in _candidates(view):
            plan = _plan_of(loop, view)
            if isinstance(plan, PairPlan):
                yield loop, plan
            else:
                tell(ctx, "missed", self.name, f"its iterations stay apart: {plan}", view, loop.op)

    def _pays(self, loop: Loop, plan: PairPlan, times: BlockTimes, ctx: PassContext) -> bool:
        """Whether compute waits for long enough, and there is memory for two micro-batches."""
        model, runs = times.model, executed_times(loop.op)[0]
        blocks = {op.block: op for op in nested_ops(loop.op)[1:] if op.name in COLLECTIVES}
        waits = sum(executed_times(op)[0] * sum(waiting(block, times).values()) for block, op in blocks.items()) / runs
        whole = model.clock.seconds(loop.op) + waits
        what = (f"compute waits for its collectives for up to {waits * 1e3:.1f} ms of {whole * 1e3:.1f} ms, according "
                f"to the model of {model.spec}")
        if waits <= self.min_gain * whole and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"its iterations stay apart: {what}", model.view, loop.op)
            return False
        memory = _kept(loop, plan)
        if not ctx.take_memory(memory):
            tell(ctx, "unprofitable", self.name, f"its iterations stay apart: two at a time would keep {memory} bytes "
                 "more, which is more than is left of the memory of this run", model.view, loop.op)
            return False
        tell(ctx, "applied", self.name, f"its {plan.counter.trips} iterations run two at a time, which keeps {memory} "
             f"bytes more: {what}", model.view, loop.op)
        return True


def has_pairs(module: Module) -> bool:
    """Whether the iterations of any loop may run two at a time.

    Args:
      module: the module; it is not changed.
    """
    ctx = PassContext()
    if not ctx.view(module).ops(WHILE):
        return False
    found = list[bool]()

    def look(_: Module, view: View) -> bool:
        found.append(any(isinstance(_plan_of(loop, view), PairPlan) for loop in _candidates(view)))
        return False

    with_inlined(module, ctx, None, look)
    return found[0]


def _candidates(view: View) -> list[Loop]:
    """The outermost loops with collectives, except those that run in pairs already."""
    outermost = (op for op in view.ops(WHILE) if not any(outer.name == WHILE for outer in ancestors(op)))
    return [Loop(op) for op in outermost if PAIRED not in op.attributes
            and any(inner.name in COLLECTIVES for inner in nested_ops(op))]


def _plan_of(loop: Loop, view: View) -> PairPlan | str:
    """The order of two iterations; or why there is none, as the end of a sentence about the loop."""
    counter = counter_of(loop)
    if counter is None or counter.trips is None:
        return "how often it runs is not a constant"
    if counter.trips < 2 or counter.trips % 2:
        return f"it runs {counter.trips} times, not an even number of times"
    if name := Effects(view).first([loop.op]):
        return f"it runs {name}"
    return pair_plan(loop, counter)


def _kept(loop: Loop, plan: PairPlan) -> int:
    """The bytes of the second micro-batch that the inner loop that carries most carries."""
    inner = [op for op in nested_ops(loop.op)[1:] if op_key(op) in plan.positions]
    return max((sum(tensor_bytes(op.results[place].type) for place in plan.positions[op_key(op)]) for op in inner),
               default=0)
