"""``sdy.manual_computation``: cuts global values for the devices, runs them, and puts the results together.

Every device of the mesh runs the region. Along an axis that stays automatic all devices hold the same values, and a
manual computation inside the region cuts those along its own axes.
"""

import math
from collections.abc import Sequence

from hlorewrite.analysis.mesh import Mesh, mesh_of
from hlorewrite.checks.reference.sequentialize.collectives import concatenated, sliced
from hlorewrite.checks.reference.sequentialize.grid import Grid
from hlorewrite.checks.reference.sequentialize.writer import LockstepWriter, Values, World
from hlorewrite.errors import CannotExecute
from hlorewrite.ir.binding import ir, sdy


class Shards:
    """How one global value is distributed over the devices.

    Args:
      lockstep: the writer, for the module's meshes.
      sharding: the ``sdy`` sharding.
      devices: how many devices there are.

    Attributes:
      counts: the number of parts that each dimension is cut into.
      places: for each device, which part it holds along each dimension.
    """

    def __init__(self, lockstep: LockstepWriter, sharding: ir.Attribute, devices: int) -> None:
        attribute = sdy.TensorShardingAttr(sharding)
        mesh = mesh_of(lockstep.view, attribute.mesh_or_ref)
        if mesh is None:
            raise CannotExecute("a sharding names a mesh that the module does not contain",
                                hint="check the sdy.mesh ops")
        if list(attribute.unreduced_axes):
            raise CannotExecute("values that are sharded over unreduced axes cannot be combined",
                                hint="reduce them in the manual region")
        dimensions = [_axes(dimension) for dimension in attribute.dimension_shardings]
        sizes = dict(mesh.axes)
        self.counts = [math.prod(sizes[axis] for axis in axes) for axes in dimensions]
        used = [axis for axes in dimensions for axis in axes]
        coordinates = mesh.coordinates(used) if used else dict.fromkeys(range(devices), ())
        self.places = [_place(dict(zip(used, coordinates[d], strict=True)), dimensions, sizes)
                       for d in range(devices)]


def devices_of(lockstep: LockstepWriter, op: ir.Operation) -> Mesh:
    """The mesh a manual computation runs on.

    Raises:
      CannotExecute: it names no mesh, or the devices are not numbered from 0 without gaps.
    """
    largest: Mesh | None = None
    for name in ("in_shardings", "out_shardings"):
        for sharding in sdy.TensorShardingPerValueAttr(op.attributes[name]).shardings:
            mesh = mesh_of(lockstep.view, sdy.TensorShardingAttr(sharding).mesh_or_ref)
            if mesh is not None and (largest is None or mesh.size > largest.size):
                largest = mesh
    where = lockstep.view.source(op)
    if largest is None:
        raise CannotExecute("a manual computation names no mesh", location=where, hint="check the sdy.mesh ops")
    if sorted(largest.device_ids) != list(range(largest.size)):
        raise CannotExecute("the devices of the mesh are not numbered from 0", location=where,
                            hint="number them from 0 without gaps")
    return largest


def run(lockstep: LockstepWriter, op: ir.Operation, operands: list[Values], world: World) -> list[Values]:
    """Writes a manual computation for all devices.

    Args:
      lockstep: the writer.
      op: the ``sdy.manual_computation``.
      operands: its operands: global values, or one for each device inside another manual computation.
      world: one process, or the devices of the manual computation around it.

    Returns:
      Its results, of the form of its operands.

    Raises:
      CannotExecute: it is inside a manual computation over another mesh or the same axes.
    """
    mesh, outer, where = devices_of(lockstep, op), lockstep.manual_axes, lockstep.view.source(op)
    named = sdy.ManualAxesAttr(op.attributes["manual_axes"])
    axes = tuple(named[position] for position in range(len(named)))
    if world.grid.size != (mesh.size if outer else 1) or set(outer) & set(axes):
        raise CannotExecute("a nested manual computation runs on another mesh or over the same axes",
                            location=where, hint="make all axes manual at once")
    devices, block = mesh.size, op.regions[0].blocks[0]
    environment = {}
    for argument, values, sharding in zip(block.arguments, operands, _shardings(op, "in_shardings"), strict=True):
        environment[argument] = _cut(lockstep, values if outer else values * devices,
                                     Shards(lockstep, sharding, devices))
    masks = world.masks if outer or not world.masks else (world.masks[0],) * devices
    lockstep.manual_axes = (*outer, *axes)
    results = lockstep.run_block(block, environment, World(Grid(1, devices), masks))
    lockstep.manual_axes = outer
    made = [_assembled_in_each(lockstep, values, Shards(lockstep, sharding, devices), mesh.coordinates(outer),
                               result.type)
            for values, sharding, result in zip(results, _shardings(op, "out_shardings"), op.results, strict=True)]
    return made if outer else [values[:1] for values in made]


def _shardings(op: ir.Operation, name: str) -> Sequence[ir.Attribute]:
    return list(sdy.TensorShardingPerValueAttr(op.attributes[name]).shardings)


def _axes(dimension: ir.Attribute) -> list[str]:
    axes = [sdy.AxisRefAttr(axis) for axis in sdy.DimensionShardingAttr(dimension).axes]
    if any(axis.sub_axis_info for axis in axes):
        raise CannotExecute("a sharding over a part of a mesh axis cannot be run", hint="split the axis in the mesh")
    return [axis.name for axis in axes]


def _place(coordinates: dict[str, int], dimensions: list[list[str]], sizes: dict[str, int]) -> tuple[int, ...]:
    """The part of each dimension that a device holds; the first axis of a dimension varies slowest."""
    place = []
    for axes in dimensions:
        part = 0
        for axis in axes:
            part = part * sizes[axis] + coordinates[axis]
        place.append(part)
    return tuple(place)


def _cut(lockstep: LockstepWriter, values: Values, shards: Shards) -> Values:
    """What each device holds of its own copy of a value."""
    kind = values[0].type
    shape = list(ir.RankedTensorType(kind).shape)
    counts = shards.counts + [1] * (len(shape) - len(shards.counts))
    if any(size % count for size, count in zip(shape, counts, strict=True)):
        raise CannotExecute(f"a value of type {kind} does not divide evenly over the mesh",
                            hint="pad it to a multiple of the mesh size")
    sizes = [size // count for size, count in zip(shape, counts, strict=True)]
    made: dict[tuple[ir.Value, tuple[int, ...]], ir.Value] = {}
    for value, place in zip(values, shards.places, strict=True):
        if (value, place) not in made:
            starts = [part * size for part, size in zip(place, sizes, strict=True)]
            made[value, place] = sliced(lockstep, value, starts, sizes)
    return tuple(made[key] for key in zip(values, shards.places, strict=True))


def _assembled_in_each(lockstep: LockstepWriter, values: Values, shards: Shards, outer: dict[int, tuple[int, ...]],
                       type_: ir.Type) -> Values:
    """One whole value for the devices at each place along the axes that were manual outside already."""
    members: dict[tuple[int, ...], list[int]] = {}
    for device in range(len(values)):
        members.setdefault(outer[device], []).append(device)
    wholes = {place: _assembled(lockstep, tuple(values[d] for d in some), [shards.places[d] for d in some],
                                shards.counts, type_) for place, some in members.items()}
    return tuple(wholes[outer[device]] for device in range(len(values)))


def _assembled(lockstep: LockstepWriter, values: Values, places: Sequence[tuple[int, ...]], counts: Sequence[int],
               type_: ir.Type) -> ir.Value:
    pieces: dict[tuple[int, ...], ir.Value] = {}
    for place, value in zip(places, values, strict=True):
        if place not in pieces:
            pieces[place] = value
        elif pieces[place] != value:
            lockstep.note_difference(pieces[place], value)
    for dimension, count in reversed(list(enumerate(counts))):
        if count > 1:
            pieces = _joined(lockstep, pieces, dimension, count)
    whole = pieces[(0,) * len(counts)]
    if whole.type != type_:
        raise CannotExecute(f"the shards of a result make {whole.type} and not {type_}", hint="check out_shardings")
    return whole


def _joined(lockstep: LockstepWriter, pieces: dict[tuple[int, ...], ir.Value], dimension: int, count: int
            ) -> dict[tuple[int, ...], ir.Value]:
    """Concatenates along one dimension, for each place along the others."""
    joined = {}
    for place in pieces:
        if place[dimension] == 0:
            row = [pieces[(*place[:dimension], part, *place[dimension + 1:])] for part in range(count)]
            tensor = ir.RankedTensorType(row[0].type)
            shape = [size * count if d == dimension else size for d, size in enumerate(tensor.shape)]
            joined[place] = concatenated(lockstep, row, dimension,
                                         ir.RankedTensorType.get(shape, tensor.element_type))
    return joined
