"""Writes one fragment of a mesh's view as a function, with the types of the values between fragments."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlorewrite.analysis.groups import Groups
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import View, channel_number, collectives, defining_op, ir, nested_ops, op_key, remap, renumbered
from hlorewrite.pipelines.mpmd.fragment_assignment import FragmentAssignment, ViewFragment, is_repeatable
from hlorewrite.pipelines.mpmd.mesh_view import COPY, MeshView, local_shape
from hlorewrite.pipelines.mpmd.types import MeshTensor


@dataclass(frozen=True)
class Interface:
    """The operands and results of a fragment.

    Attributes:
      inputs: values it reads.
      outputs: values it makes that others read.
    """

    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]


def read_outside(fragment: ViewFragment, homes: FragmentAssignment) -> list[ir.Value]:
    """Values that a fragment reads and does not make, in the order in which it first reads them."""
    own = {result for op in _ops(fragment) for inner in nested_ops(op) for result in inner.results}
    own |= {argument for op in _ops(fragment) for inner in nested_ops(op) for region in inner.regions
            for block in region.blocks for argument in block.arguments}
    captures: dict[ir.Value, None] = {}
    for op in _ops(fragment):
        for inner in nested_ops(op):
            for value in inner.operands:
                if value not in own and not (is_repeatable(value) and homes.of_value(value) is not fragment):
                    captures[value] = None
    return list(captures)


def _ops(fragment: ViewFragment) -> list[ir.Operation]:
    return [*fragment.ops, *([fragment.barrier] if fragment.barrier is not None else [])]


class FragmentEmitter:
    """Writes fragments of one view into a module.

    Args:
      view: the view.
      homes: its fragments.
      target: the block new functions are put into.
    """

    def __init__(self, view: MeshView, homes: FragmentAssignment, target: ir.Block) -> None:
        self.view = view
        self.homes = homes
        self.target = target
        self.axes = ", ".join(f'"{name}"={size}' for name, size in view.local.axes)
        listed = list(view.local.device_ids)
        self.ids = "" if listed == list(range(len(listed))) else f", device_ids={listed}"

    def emit(self, name: str, fragment: ViewFragment, interface: Interface, inputs: Sequence[MeshTensor],
             outputs: Sequence[MeshTensor], location: ir.Location) -> ir.Operation:
        """Writes a fragment.

        Args:
          name: the name of the function.
          fragment: what to write.
          interface: the values it reads and makes.
          inputs: types of the values it reads.
          outputs: types of the values it makes.
          location: the function's.

        Returns:
          The function.
        """
        kinds = [[ir.Type.parse(each.tensor) for each in side] for side in (inputs, outputs)]
        attributes = {
            "sym_name": ir.StringAttr.get(name), "sym_visibility": ir.StringAttr.get("private"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds[0], kinds[1])),
            "mesh_shape": ir.Attribute.parse(f"#sdy.mesh<[{self.axes}]{self.ids}>")}
        for key, side in (("arg_attrs", inputs), ("res_attrs", outputs)):
            rows = [ir.DictAttr.get({"sdy.sharding": ir.Attribute.parse(f"#sdy.sharding{each.sharding}")})
                    for each in side]
            if rows:
                attributes[key] = ir.ArrayAttr.get(rows)
        with location:
            function = ir.Operation.create("func.func", regions=1, attributes=attributes,
                                           ip=ir.InsertionPoint(self.target))
            block = function.regions[0].blocks.append(*kinds[0])
            if self.view.local.size == 1:
                returned = self._write(block, list(block.arguments), fragment, interface)
            else:
                returned = self._write_manual(block, fragment, interface, inputs, outputs, kinds[1])
            ir.Operation.create("func.return", operands=returned, ip=ir.InsertionPoint(block))
        _renumber_channels(function)
        return function

    def _write_manual(self, outer: ir.Block, fragment: ViewFragment, interface: Interface, inputs: Sequence[MeshTensor],
                      outputs: Sequence[MeshTensor], results: list[ir.Type]) -> list[ir.Value]:
        listed = ["#sdy.sharding_per_value<[" + ", ".join(each.sharding for each in side) + "]>"
                  for side in (inputs, outputs)]
        names = ", ".join(f'"{name}"' for name, _ in self.view.local.axes)
        manual = ir.Operation.create(
            "sdy.manual_computation", results=results, operands=list(outer.arguments), regions=1,
            attributes={"in_shardings": ir.Attribute.parse(listed[0]), "out_shardings": ir.Attribute.parse(listed[1]),
                        "manual_axes": ir.Attribute.parse(f"#sdy<manual_axes{{{names}}}>")},
            ip=ir.InsertionPoint(outer))
        tiles = [_tile(value.type, len(kind.spec)) for value, kind in zip(interface.inputs, inputs, strict=True)]
        block = manual.regions[0].blocks.append(*tiles)
        given = [_reshaped(argument, value.type, block)
                 for argument, value in zip(block.arguments, interface.inputs, strict=True)]
        returned = self._write(block, given, fragment, interface)
        ends = [_reshaped(value, _tile(value.type, len(kind.spec)), block)
                for value, kind in zip(returned, outputs, strict=True)]
        ir.Operation.create("sdy.return", operands=ends, ip=ir.InsertionPoint(block))
        return list(manual.results)

    def _write(self, block: ir.Block, given: list[ir.Value], fragment: ViewFragment,
               interface: Interface) -> list[ir.Value]:
        """Copies the ops of a fragment; returns its outputs."""
        mapping: dict[ir.Value, ir.Value] = dict(zip(interface.inputs, given, strict=True))
        barrier = fragment.barrier
        for op in _ops(fragment):
            if barrier is not None and op == barrier:
                continue
            for inner in nested_ops(op):
                for value in inner.operands:
                    self._provide(value, mapping, block, fragment, barrier)
            if COPY in op.attributes:
                mapping[op.results[0]] = mapping[op.operands[0]]
                continue
            copy = op.clone(ir.InsertionPoint(block)).operation
            remap(copy, mapping)
            mapping.update(zip(op.results, copy.results, strict=True))
        for value in interface.outputs:
            self._provide(value, mapping, block, fragment, barrier)
        return [mapping[value] for value in interface.outputs]

    def _provide(self, value: ir.Value, mapping: dict[ir.Value, ir.Value], block: ir.Block, fragment: ViewFragment,
                 barrier: ir.Operation | None) -> None:
        """Makes sure that a value is mapped: through the barrier, or by repeating a constant."""
        if value in mapping:
            return
        op = defining_op(value)
        if op is None:
            return  # an argument of a region that is copied as a whole
        if barrier is not None and op == barrier:
            source = barrier.operands[ir.OpResult(value).result_number]
            self._provide(source, mapping, block, fragment, None)
            mapping[value] = mapping[source]
        elif is_repeatable(value) and not self._is_nested(op):
            for operand in op.operands:
                self._provide(operand, mapping, block, fragment, barrier)
            copy = op.clone(ir.InsertionPoint(block)).operation
            remap(copy, mapping)
            mapping[value] = copy.results[0]

    def _is_nested(self, op: ir.Operation) -> bool:
        """Whether an op is inside the region of another op of a fragment, and is copied with it."""
        parent = op.parent
        assert parent is not None
        loop = self.homes.loop
        return parent.operation.name != "sdy.manual_computation" and not (
            loop is not None and op_key(parent.operation) == op_key(loop))


def _tile(type_: ir.Type, rank: int) -> ir.Type:
    """A device's tile: with one dimension of size 1 in front where the type outside has one more."""
    tensor = ir.RankedTensorType(type_)
    shape = list(tensor.shape)
    return tensor if len(shape) == rank else ir.RankedTensorType.get([1, *shape], tensor.element_type)


def _reshaped(value: ir.Value, type_: ir.Type, block: ir.Block) -> ir.Value:
    if value.type == type_:
        return value
    return ir.Operation.create("stablehlo.reshape", results=[type_], operands=[value],
                               ip=ir.InsertionPoint(block)).results[0]


def _renumber_channels(function: ir.Operation) -> None:
    """Gives each collective of a fragment a separate channel: they may come from several fragments."""
    number = 0
    for op in nested_ops(function):
        if op.name in collectives.COLLECTIVES and channel_number(op) > 0:
            number += 1
            op.attributes[collectives.CHANNEL] = renumbered(op, number)


__all__ = ["FragmentEmitter", "Interface", "read_outside"]


# ---- the types of values between fragments, after a pass has rewritten a mesh's view

# After the pass, a value may differ between devices on which it was equal before: it is a partial sum. It gets an
# additional leading dimension, as long as the axes along which it differs and cut over them.


class Differences:
    """The axes along which the devices of a mesh hold different values.

    Args:
      view: the view of the mesh; it must not be edited any more.
    """

    def __init__(self, view: MeshView) -> None:
        self.mesh = view.local
        self.view = View(view.module)
        self._known: dict[tuple[tuple[int, ...], ...], Uniformity] = {}

    def axes(self, value: ir.Value, base: MeshTensor) -> tuple[str, ...]:
        """The axes along which a value differs, but over which a type does not cut it.

        Args:
          value: a value of the view.
          base: the type, whose tiles are of the value's shape.

        Returns:
          Axis names in the mesh's order; empty when the type holds the value as it is.
        """
        if self._same(value, self._rows_of_tiles(base)):
            return ()
        cut = {axis for axes in base.spec for axis in axes}
        return tuple(name for name, size in self.mesh.axes
                     if size > 1 and name not in cut and not self._same(value, self._rows_along(name)))

    def _same(self, value: ir.Value, rows: tuple[tuple[int, ...], ...]) -> bool:
        if all(len(row) == 1 for row in rows):
            return True
        if rows not in self._known:
            self._known[rows] = Uniformity(self.view, Groups(rows, "flattened_ids"))
        return self._known[rows].varying(value) is None

    def _rows_along(self, axis: str) -> tuple[tuple[int, ...], ...]:
        return tuple(sorted(tuple(sorted(group)) for group in self.mesh.groups_along([axis])))

    def _rows_of_tiles(self, base: MeshTensor) -> tuple[tuple[int, ...], ...]:
        """Devices that hold the same tile."""
        places: dict[tuple[int, ...], list[int]] = {}
        parts = [axis for axes in base.spec for axis in axes]
        sizes = dict(self.mesh.axes)
        along = self.mesh.coordinates([axis.partition(":")[0] for axis in parts])
        for device in sorted(self.mesh.device_ids):
            place = tuple(_part(at, axis, sizes) for at, axis in zip(along[device], parts, strict=True))
            places.setdefault(place, []).append(device)
        return tuple(sorted(tuple(row) for row in places.values()))


def _part(at: int, axis: str, sizes: dict[str, int]) -> int:
    """The place along a part of an axis, written ``name:(before)size``."""
    name, _, part = axis.partition(":")
    if not part:
        return at
    before, size = (int(each) for each in part.removeprefix("(").split(")"))
    return at // (sizes[name] // (before * size)) % size


def with_leading(base: MeshTensor, axes: tuple[str, ...], sizes: dict[str, int]) -> MeshTensor:
    """A type with one more dimension before it, cut over some axes.

    Example:
      >>> with_leading(MeshTensor("m0", "tensor<8xf32>", (8,), "f32", 32, ((),)), ("data",), {"data": 4}).text
      '!mpmd.mesh_tensor<"m0", tensor<4x8xf32>, sharding=<@m0, [{"data"}, {}]>>'
    """
    if not axes:
        return base
    count = math.prod(sizes[axis] for axis in axes)
    shape = (count, *base.shape)
    return replace(base, shape=shape, tensor=tensor_text(shape, base.element), bytes=base.bytes * count,
                   spec=(axes, *base.spec))


def tensor_text(shape: tuple[int, ...], element: str) -> str:
    """A tensor type as MLIR writes it."""
    return "tensor<" + "".join(f"{size}x" for size in shape) + f"{element}>"


def whole_tiles(value: ir.Value, mesh: str, element_bytes: int) -> MeshTensor:
    """The default type of a value: every device holds all of it."""
    type_ = ir.RankedTensorType(value.type)
    shape = tuple(type_.shape)
    return MeshTensor(mesh, str(type_), shape, str(type_.element_type), math.prod(shape) * element_bytes,
                      ((),) * len(shape))


def nearest_base(value: ir.Value, known: dict[ir.Value, MeshTensor], view: MeshView) -> MeshTensor | None:
    """The type of the nearest value it is computed from that has the same tiles; any such type will do."""
    pending, seen = [value], {value}
    for current in pending[:64]:
        if current in known and local_shape(known[current], view.local) == tuple(
                ir.RankedTensorType(value.type).shape):
            return known[current]
        op = defining_op(current)
        if (op is not None and not len(op.regions)) or (op is not None and op.name == collectives.ALL_REDUCE.op):
            for operand in op.operands:
                if operand.type == value.type and operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
    return None
