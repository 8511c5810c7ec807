"""shard-update: optimizer state sharded over the devices that hold the same parameters (ZeRO's first stage)."""

from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.ir import ALL_REDUCE, Module, View, argument_path, ir, nested_ops, op_key, tensor_bytes
from hlorewrite.passes.common.own_shard import OwnShard
from hlorewrite.passes.common.pass_support import tell, with_inlined
from hlorewrite.passes.common.steps.manual_step import ManualStep, all_reduces, returned, step_of
from hlorewrite.passes.common.steps.step_borders import NewBorder, with_axis, write_shardings
from hlorewrite.passes.shard_update.emit import UpdateEmitter
from hlorewrite.passes.shard_update.growth import NoShards, StateShards, grown
from hlorewrite.passes.shard_update.pairs import StatePair, result_of, state_pairs
from hlorewrite.passmanager.base import Pass, PassContext


@dataclass(frozen=True)
class _ShardedUpdate:
    """The sharded update of some parameters."""

    gradient: ir.Operation
    shards: StateShards
    pairs: list[StatePair]


@dataclass(frozen=True)
class ShardUpdate(Pass):
    """Shards optimizer state and its update over a mesh axis along which parameters are replicated.

    A data-parallel step reduces each gradient on every device, and every device updates the same state. Here each
    device keeps one shard of the state, and updates that:

        p' = f(p, s, AR(g))    becomes    p' = AG(f(slice(p), s_shard, RS(g))),

    which sends the same bytes: an all-reduce is a reduce-scatter and an all-gather. New parameters are gathered in
    their own type. The arguments and results that hold state get new shardings; their global types stay. The pass finds
    them in the program: arguments that only the update reads, and whose new values are results.

    Legal where the update computes each element from those at the same place, from scalars, and from reductions of
    whole tensors to one element, which become reductions of shards and an all-reduce of a scalar; where all it reads
    is equal along the axis; and where a dimension divides by the axis. Reductions in loops have to be moved after
    them first (``comm-shift``). Where parameters are wider than gradients so much that their all-gather would send
    more than is saved, the update stays.

    Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (2020), section
    5.1; Xu et al., "Automatic Cross-Replica Sharding of Weight Update in Data-Parallel Training" (2020).

    Attributes:
      axis: the mesh axis to shard over.

    Example:
      >>> str(ShardUpdate("data"))
      'shard-update{axis=data}'
    """

    name: ClassVar[str] = "shard-update"
    changes_shardings: ClassVar[bool] = True
    axis: str

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed.

        Raises:
          InputError: the module has no manual computation that is its step, or its mesh no such axis.
        """
        return with_inlined(module, ctx, None, lambda inlined, view: self._on(inlined, view, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        step = step_of(view, self.axis, self.name)
        updates = self._updates(step, ctx)
        editor = ctx.editor(module, self.name)
        own = OwnShard(editor, step.scatter_rows)
        emitters = [UpdateEmitter(step, update.shards, update.pairs, editor, own) for update in updates]
        for update, emitter in zip(updates, emitters, strict=True):
            self._applied(step, update, ctx)
            emitter.run()
        for emitter in emitters:
            emitter.erase_old()
        own.erase_unread()
        if updates:
            write_shardings(step, [_border(step, pair) for update in updates for pair in update.pairs], editor)
        return bool(updates)

    def _updates(self, step: ManualStep, ctx: PassContext) -> list[_ShardedUpdate]:
        found: list[_ShardedUpdate] = []
        taken: set[int] = set()
        uneven: list[ir.Operation] = []
        reductions = [op for op in all_reduces(step) if _shape(op) and step.reduced_axes(op) != ()]
        for op in reductions:
            if op_key(op) in taken:
                continue
            axes = step.reduced_axes(op)
            dims = [dim for dim, size in enumerate(_shape(op)) if size % step.shards == 0]
            if not isinstance(axes, str) and not dims:
                uneven.append(op)
                continue
            update = axes if isinstance(axes, str) else _update(step, op, dims)
            if isinstance(update, str):
                tell(ctx, "blocked", self.name, f"its gradient is reduced on every device: {update}", step.view, op)
                continue
            taken |= {op_key(other) for other in update.shards.gradients()}
            found.append(update)
        self._stay(step, reductions, uneven, ctx)
        return found

    def _stay(self, step: ManualStep, reductions: list[ir.Operation], uneven: list[ir.Operation],
              ctx: PassContext) -> None:
        """Emits one remark for all gradients that do not divide, one for each reduction in a loop, or one that there
        are none."""
        if uneven:
            names = ", ".join(f"{result_of(step, op) or 'one'} ({op.results[0].type})" for op in uneven)
            tell(ctx, "blocked", self.name, f"no dimension is divisible by {step.shards}, so their state stays whole: "
                 f"{names}", step.view, uneven[0])
        outside = {op_key(op) for op in all_reduces(step)}
        inside = [op for op in nested_ops(step.op) if op.name == ALL_REDUCE.op and op_key(op) not in outside
                  and _shape(op) and step.may_scatter(op)]
        for op in inside:
            tell(ctx, "blocked", self.name, "it is in a loop, and only a reduction after the loop can produce shards",
                 step.view, op, advice="run comm-shift before shard-update")
        if not reductions and not inside:
            tell(ctx, "blocked", self.name, f'no tensor is added up over "{self.axis}": its gradients are scattered '
                 "already, or added over other axes", step.view, step.op)

    def _applied(self, step: ManualStep, update: _ShardedUpdate, ctx: PassContext) -> None:
        arguments = [step.op.operands[pair.argument] for pair in update.pairs]
        held = sum(tensor_bytes(step.block.arguments[pair.argument].type) for pair in update.pairs)
        names = ", ".join(argument_path(value.location) or f"argument {place}" for value, place in
                          ((value, ir.BlockArgument(value).arg_number) for value in arguments))
        tell(ctx, "applied", self.name, f'{names}: sharded over "{self.axis}", {held // step.shards} bytes a device '
             f"instead of {held}", step.view, update.gradient)
        ctx.count("arguments sharded", len(update.pairs))
        ctx.count("bytes of arguments saved on a device", held - held // step.shards)


def _border(step: ManualStep, pair: StatePair) -> NewBorder:
    inside, outside = (step.sharding(side, place) for side, place in (("in_shardings", pair.argument),
                                                                      ("out_shardings", pair.result)))
    return NewBorder(pair.argument, pair.result, (with_axis(step, inside, pair.dim),
                                                  with_axis(step, outside, pair.dim)))


def _update(step: ManualStep, gradient: ir.Operation, dims: list[int]) -> _ShardedUpdate | str:
    """The sharded update of a gradient, along the first dimension that allows one, or why there is none."""
    reasons: list[str] = []
    for dim in dims:
        whole: frozenset[ir.Value] = frozenset()
        # Ends: each round keeps one more argument whole.
        while True:
            shards = grown(step, gradient, dim, whole)
            if isinstance(shards, NoShards):
                reasons.append(shards.sentence)
                break
            pairs = state_pairs(step, shards)
            paired = {pair.argument for pair in pairs}
            unpaired = {ir.Value(each) for each in shards.arguments() if each.arg_number not in paired}
            if unpaired:
                whole = shards.whole | unpaired
                continue
            why_not = _loss(step, shards, pairs)
            if not why_not:
                return _ShardedUpdate(gradient, shards, pairs)
            reasons.append(why_not)
            break
    return reasons[0]


def _loss(step: ManualStep, shards: StateShards, pairs: list[StatePair]) -> str:
    """Why a sharded update would not pay; empty if it does."""
    if not pairs:
        return "no argument is state of its update"
    reduced = sum(tensor_bytes(op.results[0].type) for op in shards.gradients())
    kept = {pair.result for pair in pairs}
    gathered = {value for place, value in enumerate(returned(step)) if value in shards.dims and place not in kept}
    sent = sum(tensor_bytes(value.type) for value in gathered)
    if sent > reduced:
        return f"gathering its new values would send {sent} bytes, more than the {reduced} of the gradients"
    return ""


def _shape(op: ir.Operation) -> list[int]:
    return list(ir.RankedTensorType(op.results[0].type).shape) if isinstance(op.results[0].type, ir.RankedTensorType) \
        else []
