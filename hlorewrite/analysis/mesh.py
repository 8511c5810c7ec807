"""Meshes and shardings of the ``sdy`` dialect: which devices hold the same data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlorewrite.errors import InputError
from hlorewrite.ir import View, ancestors, ir, sdy, stablehlo
from hlorewrite.util.sizes import MOST_DEVICES


@dataclass(frozen=True)
class Mesh:
    """A device mesh.

    Attributes:
      axes: (name, size) from the slowest varying to the fastest.
      device_ids: the partition ids in row-major order of the mesh.
    """

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many devices the mesh has."""
        return len(self.device_ids)

    def coordinates(self, axes: Sequence[str]) -> dict[int, tuple[int, ...]]:
        """Partition id -> its coordinates along some axes.

        Example:
          >>> mesh = Mesh((("data", 2), ("model", 2)), (0, 1, 2, 3))
          >>> mesh.coordinates(["model"])
          {0: (0,), 1: (1,), 2: (0,), 3: (1,)}
        """
        strides, step = {}, self.size
        for name, size in self.axes:
            step //= size
            strides[name] = (step, size)
        wanted = [strides[name] for name in axes if name in strides]
        return {device: tuple(place // step % size for step, size in wanted)
                for place, device in enumerate(self.device_ids)}

    def groups_along(self, axes: Sequence[str]) -> frozenset[frozenset[int]]:
        """The groups of devices that differ only along some axes."""
        others = [name for name, _ in self.axes if name not in axes]
        members: dict[tuple[int, ...], set[int]] = {}
        for device, place in self.coordinates(others).items():
            members.setdefault(place, set()).add(device)
        return frozenset(frozenset(group) for group in members.values())


def mesh_of(view: View, reference: ir.Attribute) -> Mesh | None:
    """The mesh that an attribute names or holds; None when the module does not define it.

    Raises:
      InputError: it has too many devices, or its list of devices does not fit its axes.
    """
    attribute = reference
    if isinstance(reference, ir.FlatSymbolRefAttr) or str(reference).startswith("@"):
        name = ir.FlatSymbolRefAttr(reference).value
        definitions = [op for op in view.ops("sdy.mesh") if ir.StringAttr(op.attributes["sym_name"]).value == name]
        if not definitions:
            return None
        attribute = definitions[0].attributes["mesh"]
    if sdy.MeshAttr.isinstance(attribute):
        mesh = sdy.MeshAttr(attribute)
        axes = tuple((sdy.MeshAxisAttr(axis).name, sdy.MeshAxisAttr(axis).size) for axis in mesh.axes)
        ids = tuple(mesh.device_ids)
    elif stablehlo.MeshAttr.isinstance(attribute):  # written inline, for the groups of a collective
        written = stablehlo.MeshAttr(attribute)
        listed_axes: Any = written.axes
        axes = tuple((stablehlo.MeshAxisAttr(axis).name, stablehlo.MeshAxisAttr(axis).size) for axis in listed_axes)
        listed: Any = written.device_ids
        ids = () if listed is None else tuple(np.array(ir.DenseIntElementsAttr(listed)).reshape(-1).tolist())
    else:
        return None
    count = math.prod(size for _, size in axes)
    check_device_count(count)
    if ids and (len(ids) != count or len({each for each in ids if each >= 0}) != count):
        raise InputError(f"a mesh lists {len(ids)} devices, not one for each of the {count} positions of its "
                         "axes", hint="list each device once")
    return Mesh(axes, ids or tuple(range(count)))


def check_device_count(count: int) -> None:
    """Refuses more devices than tables support.

    Args:
      count: devices of a mesh.

    Raises:
      InputError: there are more than ``MOST_DEVICES``.
    """
    if count > MOST_DEVICES:
        raise InputError(f"a mesh has {count} devices", hint=f"at most {MOST_DEVICES} are read")


def meshes(view: View) -> dict[str, Mesh]:
    """Every named mesh of a module."""
    by_name = {}
    for op in view.ops("sdy.mesh"):
        mesh = mesh_of(view, op.attributes["mesh"])
        if mesh is not None:
            by_name[ir.StringAttr(op.attributes["sym_name"]).value] = mesh
    return by_name


def varying_axes(sharding: ir.Attribute) -> set[str]:
    """The mesh axes along which a sharded value differs between devices, sub-axes counted as whole axes."""
    attribute = sdy.TensorShardingAttr(sharding)
    axes = [axis for dimension in attribute.dimension_shardings
            for axis in sdy.DimensionShardingAttr(dimension).axes]
    axes += list(attribute.unreduced_axes)
    return {sdy.AxisRefAttr(axis).name for axis in axes}


def shardings_of(per_value: ir.Attribute) -> tuple[ir.Attribute, ...]:
    """The sharding of each argument or result of a manual computation.

    Args:
      per_value: its ``in_shardings`` or ``out_shardings``. The bindings make a list of all at every access: who asks
        for one argument after another keeps the answer.
    """
    return tuple(sdy.TensorShardingPerValueAttr(per_value).shardings)


def replicated_operand(argument: ir.BlockArgument) -> ir.Value | None:
    """The global value that an argument of a manual computation holds whole on every device; None for other arguments.

    Args:
      argument: an argument of any block.
    """
    op = argument.owner.owner.operation
    if op.name != "sdy.manual_computation":
        return None
    shardings = shardings_of(op.attributes["in_shardings"])
    place = argument.arg_number
    whole = place < len(shardings) and not varying_axes(shardings[place])
    return op.operands[place] if whole and op.operands[place].type == argument.type else None


def axis_names(groups: Sequence[Sequence[int]], view: View) -> tuple[str, ...] | None:
    """The mesh axes a set of groups spans; None when no mesh of the module has such groups.

    Args:
      groups: partition ids by group.
      view: the module, for its meshes.

    Returns:
      The fewest axis names that span the groups, from slowest to fastest.
    """
    wanted = frozenset(frozenset(group) for group in groups)
    for mesh in meshes(view).values():
        if {device for group in wanted for device in group} != set(mesh.device_ids):
            continue
        first = next(iter(sorted(wanted, key=min)))
        places = mesh.coordinates([name for name, _ in mesh.axes])
        spread = [name for position, (name, _) in enumerate(mesh.axes)
                  if len({places[device][position] for device in first}) > 1]
        if mesh.groups_along(spread) == wanted:
            return tuple(spread)
    return None


def fully_manual(op: ir.Operation, view: View) -> bool:
    """Whether values around an op belong to one device: no mesh axis is left to the partitioner."""
    around = [outer for outer in ancestors(op) if outer.name == "sdy.manual_computation"]
    if not around:
        return True
    manual = {name for outer in around for name in sdy.ManualAxesAttr(outer.attributes["manual_axes"])}
    return all({axis for axis, size in mesh.axes if size > 1} <= manual for mesh in meshes(view).values())
