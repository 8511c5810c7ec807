"""The types of values between fragments, after a pass has rewritten a mesh's view.

After the pass, a value may differ between devices on which it was equal before: it is a partial sum. It gets an
additional leading dimension, as long as the axes along which it differs and cut over them.
"""

import math
from dataclasses import replace

from hlorewrite.analysis.groups import Groups
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import ALL_REDUCE, View, defining_op, ir
from hlorewrite.pipelines.mpmd.mesh_view import MeshView, local_shape
from hlorewrite.pipelines.mpmd.types import MeshTensor


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
        if (op is not None and not len(op.regions)) or (op is not None and op.name == ALL_REDUCE.op):
            for operand in op.operands:
                if operand.type == value.type and operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
    return None
