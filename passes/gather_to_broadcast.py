"""gather-to-broadcast: turns a gather of which each device reads one shard into a broadcast or a permute."""

from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.groups import Groups
from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.ir import ALL_GATHER, Editor, View, integer_range, ir, tensor_bytes, users
from hlorewrite.ops.attributes import ints
from hlorewrite.ops.table import SLICES
from hlorewrite.passes.common.broadcasts.emit import Delivery, delivery, emit_delivery
from hlorewrite.passes.common.emit import splat_constant
from hlorewrite.passes.common.op_writer import OpWriter
from hlorewrite.passes.common.pass_support import OpByOp, tell
from hlorewrite.passes.common.shard_index import Range, partition_groups, range_along
from hlorewrite.passmanager.base import PassContext


@dataclass(frozen=True)
class _Read:
    """One slice of a gathered value.

    Attributes:
      op: the slice.
      how: how each device receives the shard that it reads.
      range: its elements along the gathered dimension.
      offset: the start of the slice in the shard; None when it differs between devices.
    """

    op: ir.Operation
    how: Delivery
    range: Range
    offset: int | None


@dataclass(frozen=True)
class GatherToBroadcast(OpByOp):
    """Sends only the shard of an all-gather that devices read, instead of all shards to all.

    The index of each slice is evaluated for every device. If the devices of a group read the same shard it is
    broadcast, if they read different ones it is permuted, if each reads its own nothing is sent. XLA does none of
    this for a gathered value with a constant index.

    Attributes:
      topology: the cluster to estimate times for; by default the one the run names, else servers of eight H100s.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> GatherToBroadcast().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "gather-to-broadcast"
    op_name: ClassVar[str] = ALL_GATHER.op
    topology: str = ""

    def _one(self, op: ir.Operation, view: View, ctx: PassContext) -> bool:
        readers = [user for result in op.results for user, _ in users(result)]
        if len(op.operands) != 1 or not readers or any(reader.name not in SLICES for reader in readers):
            return False
        groups = partition_groups(op, view)
        reads = groups if isinstance(groups, str) else _reads(op, readers, groups)
        if isinstance(reads, str) or isinstance(groups, str):
            tell(ctx, "blocked", self.name, f"the gather stays: {reads}", view, op)
            return False
        times = CollectiveTimes(self.topology or ctx.topology, sum(map(len, groups.rows)))
        before = times.seconds(ALL_GATHER.kind, tensor_bytes(op.results[0].type), groups.rows)
        after = sum(_seconds(times, read, op) for read in reads)
        if after >= before and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"the gather stays: sending {len(reads)} shards apart takes "
                 f"{after * 1e6:.0f} us, the gather {before * 1e6:.0f} us on {times.cluster}", view, op)
            return False
        what = ", ".join(sorted({read.how.kind for read in reads}))
        tell(ctx, "applied", self.name, f"each device gets the shard it reads, not all {groups.size}: {what}", view, op)
        editor = ctx.editor(view.module, self.name)
        for read in reads:
            _rewrite(editor, op, read)
        editor.erase(op)
        ctx.count("gathers replaced")
        return True


def _reads(op: ir.Operation, readers: list[ir.Operation], groups: Groups) -> list[_Read] | str:
    """What each slice reads, and how each device receives it."""
    dim = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
    shard = ir.RankedTensorType(op.operands[0].type).shape[dim]
    devices = PerDeviceConstants(sorted(d for row in groups.rows for d in row))
    row_of = {device: row for row in groups.rows for device in row}
    reads = []
    for reader in readers:
        what = range_along(reader, dim, devices)
        if isinstance(what, str):
            return what
        if not shard or not what.size:
            return "a slice of it is empty"
        if any(start // shard != (start + what.size - 1) // shard for start in what.starts.values()):
            return "a slice of it spans several shards"
        how = delivery({d: row_of[d][start // shard] for d, start in what.starts.items()})
        if how is None:
            return "its devices read shards in a pattern that neither a broadcast nor a permute can deliver"
        offsets = {start % shard for start in what.starts.values()}
        reads.append(_Read(reader, how, what, offsets.pop() if len(offsets) == 1 else None))
    return reads


def _seconds(times: CollectiveTimes, read: _Read, op: ir.Operation) -> float:
    if read.how.kind == "none":
        return 0.0
    if read.offset is not None and read.op.name == "stablehlo.slice":
        payload = tensor_bytes(read.op.results[0].type)
    else:
        dim = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
        shard = ir.RankedTensorType(op.operands[0].type).shape[dim]
        whole = tensor_bytes(op.operands[0].type)
        payload = whole if read.offset is None else whole * read.range.size // shard
    return times.seconds(read.how.kind, payload, read.how.rows)


def _rewrite(editor: Editor, op: ir.Operation, read: _Read) -> None:
    """Replaces one slice. The new collective goes where the gather was, since a slice may be in a branch."""
    dim = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
    reader, source = read.op, op.operands[0]
    shape = ir.RankedTensorType(source.type).shape
    if reader.name == "stablehlo.slice" and read.offset is not None:
        starts, limits, strides = (ints(reader, name)
                                   for name in ("start_indices", "limit_indices", "strides"))
        starts[dim], limits[dim] = read.offset, read.offset + read.range.size
        piece = OpWriter.before(editor, op, reader.location).sliced(
            source, list(zip(starts, limits, strides, strict=True)))
        editor.replace(reader.results[0], emit_delivery(editor, read.how, piece, op, op))
        editor.erase(reader)
        return
    if read.offset is not None:
        source = OpWriter.before(editor, op, reader.location).part(
            source, dim, read.offset, read.offset + read.range.size)
    arrived = emit_delivery(editor, read.how, source, op, op)
    if arrived.type == reader.results[0].type:
        editor.replace(reader.results[0], arrived)
        editor.erase(reader)
        return
    editor.set_operand(reader, 1 + dim, _index_in_shard(editor, reader, dim, read, shape[dim]))
    editor.set_operand(reader, 0, arrived)


def _index_in_shard(editor: Editor, reader: ir.Operation, dim: int, read: _Read, shard: int) -> ir.Value:
    """The slice's start as an index into the shard: clamp(start) mod shard, or zero when the shard was cut already.

    The index type may be too narrow for the last start or the shard's size; the index is then below them.
    """
    index = reader.operands[1 + dim]
    most = integer_range(index.type).stop - 1

    def constant(value: int) -> ir.Value:
        return splat_constant(editor, value, index.type, reader)

    if read.offset is not None:
        return constant(0)
    last = constant(min(most, read.range.full - read.range.size))
    clamped = editor.create("stablehlo.clamp", [constant(0), index, last], [index.type], location=reader.location,
                            before=reader).results[0]
    if shard > most:
        return clamped
    return editor.create("stablehlo.remainder", [clamped, constant(shard)], [index.type], location=reader.location,
                         before=reader).results[0]
