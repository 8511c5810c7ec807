"""Reads of one layer of a gathered stack: which layer, and whether all devices of a group read the same one."""

from dataclasses import dataclass

from hlorewrite.analysis.groups import Groups
from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import BRANCHES, View, ancestors, ir, is_static_tensor, terminator, users
from hlorewrite.ops.attributes import ints
from hlorewrite.ops.table import SLICES
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
