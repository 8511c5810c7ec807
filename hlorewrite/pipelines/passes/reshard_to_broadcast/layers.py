"""Reads of one layer of a gathered stack: which layer, whether all devices of a group read the same, its delivery."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.analysis.groups import Groups, rows_attribute
from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import (
    ALL_REDUCE,
    BRANCHES,
    COLLECTIVE_BROADCAST,
    Editor,
    View,
    ancestors,
    element_bytes,
    ir,
    is_static_tensor,
    terminator,
    users,
)
from hlorewrite.ops.attributes import ints
from hlorewrite.ops.table import SLICES
from hlorewrite.passes.common.broadcasts.emit import Delivery, channel_of, emit_delivery
from hlorewrite.passes.common.device_masks import lookup, zeros_like
from hlorewrite.passes.common.emit import add_reducer
from hlorewrite.passes.common.op_writer import OpWriter
from hlorewrite.passes.common.shard_index import partition_groups, range_along


@dataclass(frozen=True)
class LayerRead:
    """One slice that reads one layer, the same on every device of a group.

    Attributes:
      op: the slice.
      layer: its number, if that is the same on every device of the module; None if it is known only at run time.
      everywhere: whether all devices of the module are known to read the same layer.
    """

    op: ir.Operation
    layer: int | None
    everywhere: bool


@dataclass(frozen=True)
class Stack:
    """A gathered stack of layers, read one at a time.

    Attributes:
      op: the gather.
      groups: who gathers; every device is in one group.
      dim: the dimension of the layers.
      held: layers each device holds.
      reads: its readers.
    """

    op: ir.Operation
    groups: Groups
    dim: int
    held: int
    reads: tuple[LayerRead, ...]

    @property
    def layers(self) -> int:
        """Layers of the whole stack."""
        return self.held * self.groups.size


def reads_at_run_time(op: ir.Operation) -> bool:
    """Whether a slice of a gather has an index along the gathered dimension that is known only at run time.

    Args:
      op: a ``stablehlo.all_gather``.

    Returns:
      Whether one of its readers is a ``dynamic_slice`` whose index depends on more than constants and device ids.

    Example:
      A read at the loop's counter is one; a read at ``axis_index`` is not.
    """
    if len(op.operands) != 1:
        return False
    dim = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
    devices = PerDeviceConstants([0])
    return any(reader.name == SLICES[1] and place == 0 and devices.table(reader.operands[1 + dim]) is None
               for reader, place in users(op.results[0]))


def stack_of(op: ir.Operation, view: View) -> Stack | str:
    """The stack a gather makes, when all its readers read one layer at a time.

    Args:
      op: a ``stablehlo.all_gather`` with one operand.
      view: its module.

    Returns:
      The stack, or why the gather must stay.
    """
    groups = partition_groups(op, view)
    if isinstance(groups, str):
        return groups
    if not is_static_tensor(op.operands[0].type):
        return "its shape is not static"
    dim = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
    held = ir.RankedTensorType(op.operands[0].type).shape[dim]
    if not held or not groups.size:
        return "it gathers nothing"
    devices = PerDeviceConstants(sorted(device for row in groups.rows for device in row))
    uniform = Uniformity(view, groups)
    world = Uniformity(view, Groups((devices.devices,), groups.mode))
    reads = []
    for reader, place in users(op.results[0]):
        if reader.name not in SLICES or place:
            return f"{reader.name} reads all of it"
        read = _read(reader, dim, devices, uniform, world) if _size(reader, dim) == 1 else (
            f"a slice of it reads {_size(reader, dim)} layers, which may be on several devices")
        why = read if isinstance(read, str) else _control(reader, op, uniform)
        if isinstance(read, str) or why:
            return why
        reads.append(read)
    return Stack(op, groups, dim, held, tuple(reads))


def _read(reader: ir.Operation, dim: int, devices: PerDeviceConstants, uniform: Uniformity,
          world: Uniformity) -> LayerRead | str:
    known = range_along(reader, dim, devices)
    if not isinstance(known, str):
        starts = set(known.starts.values())
        if len(starts) > 1:
            return "one slice of it reads a different layer on each device, another one a layer known only at run time"
        return LayerRead(reader, starts.pop(), True)
    index = reader.operands[1 + dim]
    varying = uniform.varying(index)
    if varying is not None:
        return f"the devices of a group may read different layers: {varying.sentence}"
    return LayerRead(reader, None, world.varying(index) is None)


def _size(reader: ir.Operation, dim: int) -> int:
    """How many layers a slice spans."""
    if reader.name == SLICES[1]:
        return ints(reader, "slice_sizes")[dim]
    start, limit = (ints(reader, name)[dim]
                    for name in ("start_indices", "limit_indices"))
    return limit - start


def _control(reader: ir.Operation, gather: ir.Operation, uniform: Uniformity) -> str:
    """Why only some devices of a group might reach a collective put in the reader's place; empty if all do.

    All devices reach the gather. Between it and the reader, every branch and loop condition has to be the same on all
    devices of a group.
    """
    if reader.block == gather.block:
        return ""
    for outer in ancestors(reader):
        if outer.name == "stablehlo.while":
            decision = terminator(outer.regions[0].blocks[0]).operands[0]
        elif outer.name in BRANCHES:
            decision = outer.operands[0]
        else:
            return f"a slice of it is inside a {outer.name}"
        varying = uniform.varying(decision)
        if varying is not None:
            return f"not all devices of a group may reach a slice of it: {varying.sentence}"
        if outer.block == gather.block:
            return ""
    return "a slice of it is outside the region of the gather"


def index_of(read: LayerRead, dim: int) -> ir.Value:
    """The index of a read that is known only at run time."""
    return read.op.operands[1 + dim]


# ---- writing the delivery of one layer: a broadcast, a switch over its owners, or a masked sum

# With s layers of a stack per device, member i div s holds layer i, as its layer i mod s. If i is known only at run
# time, either a ``case`` selects one broadcast per owner, or the members add their layers i mod s: the owner
# contributes the layer, all others contribute zeros.


def emit_layer(editor: Editor, stack: Stack, read: LayerRead, form: str) -> None:
    """Replaces one slice of the gathered stack by a delivery of just that layer, at the place of the slice.

    Args:
      editor: the editor of the module.
      stack: the stack.
      read: one of its reads.
      form: ``broadcast`` (the layer is known), ``switch`` or ``masked-sum``.
    """
    writer = _LayerWriter(editor, stack, read)
    arrived = writer.broadcast() if form == "broadcast" else writer.chosen_at_run_time(form)
    writer.read_from(arrived)


class _LayerWriter:
    def __init__(self, editor: Editor, stack: Stack, read: LayerRead) -> None:
        self.editor, self.stack, self.read = editor, stack, read
        self.shard = stack.op.operands[0]
        self.type_ = ir.RankedTensorType(self.shard.type)
        self.rows, self.writer = stack.groups.rows, OpWriter.before(editor, read.op)

    def broadcast(self) -> ir.Value:
        """The layer from its owner, both known."""
        owner, offset = divmod(self.read.layer or 0, self.stack.held)
        piece = self.writer.part(self.shard, self.stack.dim, offset, offset + 1)
        how = Delivery(COLLECTIVE_BROADCAST.kind, _source_first(self.rows, owner))
        return emit_delivery(self.editor, how, piece, self.stack.op, self.read.op)

    def chosen_at_run_time(self, form: str) -> ir.Value:
        """The layer from the device that owns it."""
        index = self._index()
        held = self._constant(self.stack.held)
        owner = self.writer.make("stablehlo.divide", [index, held], index.type)
        piece = self.shard
        if self.stack.held > 1:
            offset = self.writer.make("stablehlo.remainder", [index, held], index.type)
            zero = self._constant(0)
            shape = list(self.type_.shape)
            shape[self.stack.dim] = 1
            starts = [offset if dim == self.stack.dim else zero for dim in range(len(shape))]
            piece = self.writer.make("stablehlo.dynamic_slice", [self.shard, *starts], self._tensor(shape),
                               slice_sizes=self.writer.numbers(shape))
        return self._switch(owner, piece) if form == "switch" else self._masked_sum(owner, piece)

    def read_from(self, arrived: ir.Value) -> None:
        """Makes the slice read the layer that has arrived instead of the stack."""
        reader, dim = self.read.op, self.stack.dim
        if arrived.type == reader.results[0].type:
            self.editor.replace(reader.results[0], arrived)
            self.editor.erase(reader)
            return
        if reader.name == "stablehlo.dynamic_slice":
            index = reader.operands[1 + dim]
            self.editor.set_operand(reader, 1 + dim, self._constant(0, index.type))
        else:
            for name, value in (("start_indices", 0), ("limit_indices", 1)):
                numbers = ints(reader, name)
                numbers[dim] = value
                self.editor.set_attribute(reader, name, self.writer.numbers(numbers))
        self.editor.set_operand(reader, 0, arrived)

    def _index(self) -> ir.Value:
        """clamp(0, index, layers - 1) as i32; StableHLO clamps the start of a dynamic slice."""
        index = self.read.op.operands[1 + self.stack.dim]
        wide = self._tensor([], "i32")
        if ir.IntegerType(ir.RankedTensorType(index.type).element_type).width < 32:
            index = self.writer.make("stablehlo.convert", [index], wide)
        low, high = self._constant(0, index.type), self._constant(self.stack.layers - 1, index.type)
        index = self.writer.make("stablehlo.clamp", [low, index, high], index.type)
        return index if index.type == wide else self.writer.make("stablehlo.convert", [index], wide)

    def _switch(self, owner: ir.Value, piece: ir.Value) -> ir.Value:
        op = self.editor.create("stablehlo.case", [owner], [piece.type], regions=self.stack.groups.size,
                                location=self.read.op.location, before=self.read.op)
        attributes = {"channel_handle": channel_of(self.editor, self.stack.op)}
        for member, region in enumerate(op.regions):
            block = region.blocks.append()
            attributes["replica_groups"] = rows_attribute(self.editor.context, _source_first(self.rows, member))
            sent = self.editor.create(COLLECTIVE_BROADCAST.op, [piece], [piece.type], attributes=attributes,
                                      location=self.stack.op.location, at_end=block)
            self.editor.create("stablehlo.return", [sent.results[0]], [], location=self.read.op.location, at_end=block)
        return op.results[0]

    def _masked_sum(self, owner: ir.Value, piece: ir.Value) -> ir.Value:
        """The sum of the owner's bits and zeros, as unsigned integers, so that every bit is preserved."""
        bits = self._bits_type(piece.type)
        carried = piece if bits is None else self.writer.make("stablehlo.bitcast_convert", [piece], bits)
        members = {device: place for row in self.rows for place, device in enumerate(row)}
        place = lookup(self.editor, [members[device] for device in sorted(members)], self.read.op)
        mine = self.writer.make("stablehlo.convert", [place], self._tensor([], "i32"))
        with self.editor.context:
            equal = ir.Attribute.parse("#stablehlo<comparison_direction EQ>")
        mask = self.writer.make("stablehlo.compare", [mine, owner], self._tensor([], "i1"), comparison_direction=equal)
        zeros = zeros_like(self.editor, carried.type, self.read.op)
        masked = self.writer.make("stablehlo.select", [mask, carried, zeros], carried.type)
        with self.editor.context:
            attributes = {"replica_groups": rows_attribute(self.editor.context, self.rows),
                          "channel_handle": channel_of(self.editor, self.stack.op),
                          "use_global_device_ids": ir.UnitAttr.get()}
        total = self.editor.create(ALL_REDUCE.op, [masked], [carried.type], attributes=attributes, regions=1,
                                   location=self.stack.op.location, before=self.read.op)
        element = str(ir.RankedTensorType(carried.type).element_type)
        add_reducer(self.editor, total, "or" if element == "i1" else "sum")
        return total.results[0] if bits is None else self.writer.make("stablehlo.bitcast_convert", [total.results[0]],
                                                                 piece.type)

    def _bits_type(self, type_: ir.Type) -> ir.Type | None:
        """Unsigned integers with the bits of a floating-point type; None when values are added as they are."""
        tensor = ir.RankedTensorType(type_)
        if not isinstance(tensor.element_type, ir.FloatType):
            return None
        return self._tensor(list(tensor.shape), f"ui{int(element_bytes(tensor.element_type) * 8)}")

    def _constant(self, number: int, type_: ir.Type | None = None) -> ir.Value:
        type_ = type_ or self._tensor([], "i32")
        with self.editor.context, self.read.op.location:
            element = ir.RankedTensorType(type_).element_type
            value = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(element, number))
        return self.writer.make("stablehlo.constant", [], type_, value=value)

    def _tensor(self, shape: list[int], element: str = "") -> ir.Type:
        with self.editor.context, ir.Location.unknown():
            return ir.RankedTensorType.get(shape, ir.Type.parse(element) if element else self.type_.element_type)


def _source_first(rows: Sequence[Sequence[int]], member: int) -> tuple[tuple[int, ...], ...]:
    """Each group with the member of a place in front."""
    return tuple((row[member], *row[:member], *row[member + 1:]) for row in rows)
