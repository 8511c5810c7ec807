"""sequence-parallel: the ops between the matrix products of tensor parallelism work on shards of the sequence."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.groups import Groups
from hlorewrite.analysis.mesh import axis_names, meshes
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.ir import ALL_REDUCE, Module, View, ir, is_static_tensor, nested_ops, op_key
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.passes.common.dimension_region import Region
from hlorewrite.passes.common.pass_support import tell, with_inlined
from hlorewrite.passes.common.shard_index import partition_groups
from hlorewrite.passes.sequence_parallel.choose import ShardChoice, best_of
from hlorewrite.passes.sequence_parallel.emit import ShardEmitter
from hlorewrite.passes.sequence_parallel.region import ShardRegionFinder
from hlorewrite.passmanager.base import Pass, PassContext

_MATMULS = ("stablehlo.dot_general", "stablehlo.convolution")
_ANYTHING = ("func.return",)
Reductions = dict[int, ir.Operation]


@dataclass(frozen=True)
class SequenceParallel(Pass):
    """Shards activations between the matrix products of tensor parallelism, at equal communication.

    A block of a tensor-parallel transformer ends in an all-reduce over the model axis. Norms, dropout and residual
    additions after it compute the same on every device of a group. Here the all-reduce becomes a reduce-scatter along
    a dimension of the result that no op mixes (the sequence or the batch), the ops after it work on shards, also
    through loops that carry or stack them, and an all-gather is before the next matrix product:

        f(AR(x)) = AG(f(RS(x))),

    Bytes on the wire stay as they are; activations shrink by the size of the group (Korthikanti et al. 2022,
    "Reducing Activation Recomputation in Large Transformer Models"). Each value is either whole or sharded; the choice
    is a minimum cut. Where a gathered value is read again much later, in the backward pass, keeping the shard needs a
    second gather: ``extra`` allows that.

    Legal where the reduction is a sum over groups that cover all devices evenly, the group divides the dimension, the
    values between are equal on all devices of a group, and each op between has a form on shards; sums over the sharded
    dimension are summed over the group. Random bits are drawn whole and sliced. Only what feeds matrix products is
    sharded: gradients of data parallelism feed none.

    Attributes:
      axis: the mesh axis of the groups; any by default.
      extra: communication that may be added, as a share of what the all-reduces send; 0.25 is enough for each layer to
        gather its inputs again in the backward pass.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> SequenceParallel().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "sequence-parallel"
    axis: str = ""
    extra: float = 0.004

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view = ctx.view(module)
        if self.extra < 0:
            raise UsageError(f'pass "{self.name}" needs a share of at least 0, not {self.extra}',
                             hint="omit extra to use its default")
        axes = {name for mesh in meshes(view).values() for name, _ in mesh.axes}
        if self.axis and axes and self.axis not in axes:
            raise UsageError(f'no mesh of the module has an axis "{self.axis}"', hint=did_you_mean(self.axis, axes))
        if not view.ops(ALL_REDUCE.op):
            return False
        # The ops between reductions may be in any function, such as one of jax.nn.
        return with_inlined(module, ctx, _ANYTHING, lambda inlined, seen: self._on(inlined, seen, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        changed = False
        for groups, reductions in self._by_groups(view, ctx):
            changed = self._shard(module, view, groups, reductions, ctx) or changed
        return changed

    def _by_groups(self, view: View, ctx: PassContext) -> Iterator[tuple[Groups, Reductions]]:
        """The all-reduces that may become reduce-scatters, by their groups."""
        found: dict[Groups, Reductions] = {}
        wanted = {op_key(op) for op in view.ops(ALL_REDUCE.op)}
        for op in [op for op in nested_ops(view.module.operation) if op_key(op) in wanted]:
            groups = partition_groups(op, view)
            why = groups if isinstance(groups, str) else _obstacle(op)
            if why or isinstance(groups, str):
                tell(ctx, "missed", self.name, f"the all-reduce stays: {why}", view, op)
            elif groups.size > 1 and (not self.axis or axis_names(groups.rows, view) == (self.axis,)):
                found.setdefault(groups, {})[op_key(op)] = op
        yield from found.items()

    def _shard(self, module: Module, view: View, groups: Groups, reductions: Reductions, ctx: PassContext) -> bool:
        """Shards the values around the all-reduces of some groups."""
        left, changed = dict(reductions), False
        finder = ShardRegionFinder(left, groups.size, Uniformity(view, groups))
        # Ends: each round takes an all-reduce away.
        while left:
            op = next(iter(left.values()))
            rank = ir.RankedTensorType(op.results[0].type).rank
            regions = [finder.region(op, dimension) for dimension in range(rank)]
            choice = best_of(regions, groups.size, self.extra, _feeds_matmul)
            if choice is None:
                for key in dict.fromkeys((op_key(op), *_reductions_in(regions))):
                    self._stays(left.pop(key), regions, view, ctx)
                continue
            for key in self._report(choice, op, groups.size, view, ctx):
                del left[key]
            ShardEmitter(ctx.editor(module, self.name), choice, groups.rows, op).run()
            finder = ShardRegionFinder(left, groups.size, Uniformity(view, groups))
            changed = True
        return changed

    # ---- remarks

    def _report(self, choice: ShardChoice, first: ir.Operation, size: int, view: View, ctx: PassContext) -> list[int]:
        """Reports the outcome for the all-reduces of a region; returns their keys."""
        region, keys = choice.region, []
        chosen = [region.members[index] for index in choice.chosen]
        ctx.count("values sharded", sum(len(member.values) for member in chosen))
        for index, member in enumerate(region.members):
            if not member.reduces:
                continue
            keys.append(op_key(member.op))
            dimension = region.dims[member.values[0]]
            if index not in choice.chosen:
                tell(ctx, "unprofitable", self.name, f"the all-reduce stays: sharded along dimension {dimension}, what "
                     "reads it would gather more than is saved", view, member.op)
                continue
            ctx.count("reduce-scatters made")
            also = (f"; with {len(chosen) - 1} more values, this frees {choice.memory} bytes, {choice.carried} of them "
                    f"carried by loops, and sends {choice.after} bytes ({choice.before} before)"
                    ) if member.op == first else ""
            tell(ctx, "applied", self.name, f"it is reduce-scattered along dimension {dimension} over {size} "
                 f"devices, and gathered where it is read whole{also}", view, member.op)
        return keys

    def _stays(self, op: ir.Operation, regions: list[Region], view: View, ctx: PassContext) -> None:
        """Says why an all-reduce stays."""
        possible = [dimension for dimension, region in enumerate(regions) if region.members]
        if possible:
            tell(ctx, "missed", self.name, "the all-reduce stays: nothing between it and a matrix product can be "
                 f"sharded along dimension {' or '.join(map(str, possible))}", view, op)
        elif regions:
            tell(ctx, "blocked", self.name, "the all-reduce stays: its result " + "; ".join(
                region.refused[op_key(op)] for region in regions), view, op)


def _feeds_matmul(choice: ShardChoice) -> bool:
    """Whether a gathered value feeds a matrix product: tensor parallelism, not gradients of data parallelism."""
    region, chosen = choice.region, choice.chosen
    return any(op.name in _MATMULS for index in chosen for value in region.members[index].values
               for op, _, reader in region.readers(value) if reader not in chosen)


def _reductions_in(regions: list[Region]) -> list[int]:
    """Keys of the all-reduces of some regions, in the order of their members."""
    return list(dict.fromkeys(op_key(member.op) for region in regions for member in region.members if member.reduces))


def _obstacle(op: ir.Operation) -> str:
    """Why an all-reduce cannot become a reduce-scatter, whatever its groups; empty when it can."""
    if len(op.operands) != 1 or not is_static_tensor(op.operands[0].type):
        return "it reduces several tensors, or one of unknown shape"
    return "" if reduction_kind(op) == "sum" else "its reducer is not a sum"
