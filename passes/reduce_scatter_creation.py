"""reduce-scatter-creation: turns an all-reduce of which each device keeps only a slice into a reduce-scatter.

Where several devices of a group keep the same slice (sharded within hosts, replicated across them), an all-reduce of
the slice among these follows.
"""

from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.groups import Groups, rows_attribute
from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.ir import ALL_REDUCE, REDUCE_SCATTER, Editor, View, ir, is_static_tensor, users, with_dimension
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.passes.common.emit import add_reducer, integer_attribute
from hlorewrite.passes.common.op_writer import OpWriter
from hlorewrite.passes.common.pass_support import OpByOp, tell
from hlorewrite.passes.common.shard_index import (
    Range,
    is_one_number,
    partition_groups,
    range_along,
    sliced_dimensions,
)
from hlorewrite.passmanager.base import PassContext

_UNARY = ("stablehlo.negate", "stablehlo.convert")
_WITH_SPLAT = ("stablehlo.multiply", "stablehlo.divide", "stablehlo.add", "stablehlo.subtract")
_MOST_STEPS = 16
Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ShardLayout:
    """The shard of a reduced value that each device keeps.

    Attributes:
      dim: the scattered dimension.
      scatter: groups whose members keep one shard each, in the order of the shards.
      reduce: groups whose members keep the same shard; empty if no two members of a group of the all-reduce do.
    """

    dim: int
    scatter: Rows
    reduce: Rows = ()


@dataclass(frozen=True)
class _SliceChain:
    """The ops between a reduction and the slices of it.

    Attributes:
      steps: reshapes, unary elementwise ops and elementwise ops with a splat constant, in order.
      slices: the slices at the end.
    """

    steps: tuple[ir.Operation, ...]
    slices: tuple[ir.Operation, ...]


@dataclass(frozen=True)
class ReduceScatterCreation(OpByOp):
    """Turns an all-reduce and the slice that each device keeps into a reduce-scatter.

    The start of the slice is evaluated for every device; along one dimension the members of each group must read all
    shards, each as often, in whatever order. Reshapes and elementwise ops with a constant may be in between, as in
    the slice of a mean. Each device then receives 1/n of the payload. Where r members read each shard, an all-reduce
    of the shard over these r follows, which comm-shift can defer. XLA's ReduceScatterCreator looks through reshapes
    alone, and takes one member for each shard only.

    Attributes:
      only_split: leave those alone that XLA makes too: with one member for each shard.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> ReduceScatterCreation().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "reduce-scatter-creation"
    only_split: bool = False

    def _one(self, op: ir.Operation, view: View, ctx: PassContext) -> bool:
        chain = _chain(op) if len(op.operands) == 1 and is_static_tensor(op.operands[0].type) else None
        if chain is None:
            return False
        groups, kind = partition_groups(op, view), reduction_kind(op)
        layout = (groups if isinstance(groups, str)
                  else "its reducer is none of sum, product, maximum, minimum, and, or" if kind is None
                  else _scatter(chain, groups))
        if isinstance(layout, str) or kind is None:
            tell(ctx, "blocked", self.name, f"the all-reduce stays: {layout}", view, op)
            return False
        if self.only_split and not layout.reduce:
            return False
        again = f"; {len(layout.reduce[0])} devices that keep the same slice reduce it" if layout.reduce else ""
        tell(ctx, "applied", self.name, f"each of {len(layout.scatter[0])} devices gets the slice it keeps{again}",
             view, op)
        _rewrite(ctx.editor(view.module, self.name), op, chain, kind, layout)
        ctx.count("reduce-scatters made")
        return True


def _chain(op: ir.Operation) -> _SliceChain | None:
    """The slices that are the only readers of a reduction; None if it has other readers."""
    steps: list[ir.Operation] = []
    value = op.results[0]
    for _ in range(_MOST_STEPS):
        readers = [reader for reader, _ in users(value)]
        if readers and all(r.name == "stablehlo.dynamic_slice" and r.operands[0] == value for r in readers):
            return _SliceChain(tuple(steps), tuple(readers))
        if len(readers) != 1 or readers[0].block != op.block or not _is_step(readers[0], value):
            return None
        steps.append(readers[0])
        value = readers[0].results[0]
    return None


def _is_step(op: ir.Operation, value: ir.Value) -> bool:
    if op.name == "stablehlo.reshape" or op.name in _UNARY:
        return True
    others = [operand for operand in op.operands if operand != value]
    return op.name in _WITH_SPLAT and len(others) == 1 and is_one_number(others[0])


def _scatter(chain: _SliceChain, groups: Groups) -> ShardLayout | str:
    """The layout of the shards, or why there is none."""
    devices = PerDeviceConstants(sorted(d for row in groups.rows for d in row))
    layouts: set[ShardLayout] = set()
    for op in chain.slices:
        dims = sliced_dimensions(op)
        if len(dims) != 1:
            return f"a slice of it cuts {len(dims)} dimensions, not one"
        what = range_along(op, dims[0], devices)
        layout = what if isinstance(what, str) else _layout(dims[0], what, groups)
        if isinstance(layout, str):
            return layout
        layouts.add(layout)
    if len(layouts) != 1:
        return "its slices cut it differently"
    reshapes = [k for k, step in enumerate(chain.steps) if step.name == "stablehlo.reshape"]
    if reshapes and any(step.name != "stablehlo.reshape" for step in chain.steps[:reshapes[-1]]):
        return "a reshape follows other ops on its way to the slice"
    return layouts.pop()


def _layout(dim: int, what: Range, groups: Groups) -> ShardLayout | str:
    """The shard that each member of a group keeps; members that keep the same one are in the order of ids."""
    if not what.size:
        return "a slice of it is empty"
    shards, left = divmod(what.full, what.size)
    if left or groups.size % shards:
        return f"a slice of it is {what.size} of {what.full} elements, but its groups have {groups.size} members"
    scatter: list[tuple[int, ...]] = []
    reduce: list[tuple[int, ...]] = []
    for row in groups.rows:
        keep = [tuple(sorted(d for d in row if what.starts[d] == k * what.size)) for k in range(shards)]
        if any(len(members) * shards != groups.size for members in keep):
            return "the devices of a group do not read all of its shards equally often"
        scatter += zip(*keep, strict=True)
        reduce += keep
    return ShardLayout(dim, tuple(scatter), tuple(reduce) if shards < groups.size else ())


def _rewrite(editor: Editor, op: ir.Operation, chain: _SliceChain, kind: str, layout: ShardLayout) -> None:
    """``slice(f(AR(reshape x))) = f(RS(reshape x))`` for elementwise f; or of AR(RS(reshape x))."""
    value = op.operands[0]
    rest = list(chain.steps)
    dim, rows = layout.dim, layout.scatter
    # Ends: each round takes a step.
    while rest and rest[0].name == "stablehlo.reshape":
        step = rest.pop(0)
        value = editor.create(step.name, [value], [step.results[0].type], location=step.location,
                              before=op).results[0]
    shard = _reduced(editor, op, value, kind, layout)
    before = op.results[0] if not chain.steps[:len(chain.steps) - len(rest)] else \
        chain.steps[len(chain.steps) - len(rest) - 1].results[0]
    for step in rest:
        operands = [shard if operand == before else _splat(editor, operand, dim, len(rows[0]), step)
                    for operand in step.operands]
        attributes = {name: step.attributes[name] for name in step.attributes}
        before = step.results[0]
        shard = editor.create(step.name, operands, [_sharded(before.type, dim, len(rows[0]))], attributes=attributes,
                              location=step.location, before=step).results[0]
    for reader in chain.slices:
        editor.replace(reader.results[0], shard)
        editor.erase(reader)
    for step in reversed(chain.steps):
        editor.erase(step)
    editor.erase(op)


def _reduced(editor: Editor, op: ir.Operation, value: ir.Value, kind: str, layout: ShardLayout) -> ir.Value:
    """The shard of the sum that each device keeps."""
    kept = _sharded(value.type, layout.dim, len(layout.scatter[0]))
    for name, rows in ((REDUCE_SCATTER.op, layout.scatter), (ALL_REDUCE.op, layout.reduce)):
        if not rows:
            continue
        attributes = {key: op.attributes[key] for key in op.attributes}
        attributes["replica_groups"] = rows_attribute(editor.context, rows)
        if name == REDUCE_SCATTER.op:
            attributes["scatter_dimension"] = integer_attribute(editor, layout.dim)
        made = editor.create(name, [value], [kept], attributes=attributes, regions=1, location=op.location, before=op)
        add_reducer(editor, made, kind)
        value = made.results[0]
    return value


def _sharded(type_: ir.Type, dim: int, members: int) -> ir.Type:
    return with_dimension(type_, dim, ir.RankedTensorType(type_).shape[dim] // members)


def _splat(editor: Editor, value: ir.Value, dim: int, members: int, before: ir.Operation) -> ir.Value:
    """The part of a splat constant that one device needs."""
    return OpWriter.before(editor, before).part(value, dim, 0, ir.RankedTensorType(value.type).shape[dim] // members)
