"""Devices and shardings of a program's meshes, and the values that are put onto them."""

import re
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from hlorewrite.analysis.mesh import Mesh
from hlorewrite.errors import InputError, UsageError
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.execute import Value
from hlorewrite.pipelines.mpmd.program import Program
from hlorewrite.pipelines.mpmd.types import MeshTensor

_PART = re.compile(r"(?P<name>.+):\((?P<before>\d+)\)(?P<size>\d+)")


@dataclass
class PlacedMeshes:
    """A program's meshes on real devices.

    Args:
      program: the program.
      devices: JAX devices by the program's device number.
    """

    program: Program
    devices: dict[int, Any]
    _meshes: dict[str, tuple[jax.sharding.Mesh, dict[str, tuple[str, ...]]]] = field(default_factory=dict, repr=False)
    _shardings: dict[tuple[str, Any], NamedSharding] = field(default_factory=dict, repr=False)

    def of_mesh(self, name: str) -> tuple[Any, ...]:
        """The devices of a mesh in row-major order."""
        return tuple(self.devices[number] for number in self.program.meshes[name].device_ids)

    def processes(self, name: str) -> tuple[int, ...]:
        """The processes that have devices of a mesh, in ascending order."""
        return tuple(sorted({device.process_index for device in self.of_mesh(name)}))

    def here(self, name: str) -> bool:
        """Whether this process has devices of a mesh."""
        return jax.process_index() in self.processes(name)

    @property
    def platform(self) -> str:
        """``cpu``, ``gpu``, ..."""
        return next(iter(self.devices.values())).platform

    def sharding(self, type_: MeshTensor) -> NamedSharding:
        """The sharding of a value; the same object for the same mesh and cut, so that comparing it costs nothing.

        Raises:
          InputError: the value is on no mesh, holds parts of a sum, or is cut unevenly.
        """
        key = type_.mesh, type_.spec
        if key not in self._shardings:
            if type_.unreduced:
                raise InputError("a value holds parts of a sum that only its type shows",
                                 location=self.program.name, hint="write it with one more dimension in front")
            mesh, parts = self._mesh(type_.mesh)
            entries = [tuple(name for axis in axes for name in _names(axis, parts)) for axes in type_.spec]
            self._shardings[key] = NamedSharding(mesh, PartitionSpec(*(
                None if not names else names[0] if len(names) == 1 else names for names in entries)))
        sharding = self._shardings[key]
        try:
            sharding.shard_shape(type_.shape)
        except ValueError:
            raise InputError(f"a value of type {type_.text} is cut unevenly, which JAX arrays cannot be",
                             location=self.program.name, hint="choose sizes that the mesh's axes divide") from None
        return sharding

    def jax_mesh(self, name: str) -> jax.sharding.Mesh:
        """A mesh of the program as a JAX object."""
        return self._mesh(name)[0]

    def _mesh(self, name: str) -> tuple[jax.sharding.Mesh, dict[str, tuple[str, ...]]]:
        """A JAX mesh, axes split where a value is cut over a part of one; and the parts of each axis or part."""
        if name not in self.program.meshes:
            raise InputError("a value is on no mesh of the program", location=self.program.name,
                             hint="add a mesh to its type")
        if name not in self._meshes:
            axes, parts = _split(self.program.meshes[name], {
                axis for kind in self.program.types if kind.mesh == name for axes in kind.spec for axis in axes},
                self.program.name)
            grid = np.array(self.of_mesh(name)).reshape([size for _, size in axes])
            kinds = (jax.sharding.AxisType.Auto,) * len(axes)
            self._meshes[name] = jax.sharding.Mesh(grid, tuple(axis for axis, _ in axes), axis_types=kinds), parts
        return self._meshes[name]


def place_meshes(program: Program, devices: Sequence[Any] | dict[str, Sequence[Any]] | None) -> PlacedMeshes:
    """Gives the meshes of a program their devices.

    Args:
      program: the program.
      devices: all devices, of which number d of the program is the d-th; or the devices of each mesh by its name, in
        row-major order; ``jax.devices()`` by default.

    Returns:
      The meshes on devices.

    Raises:
      UsageError: there are too few, one mesh has the wrong number, or they are of several platforms.
    """
    by_number: dict[int, Any] = {}
    if isinstance(devices, dict):
        if set(devices) != set(program.meshes):
            raise UsageError(f"devices were passed for meshes {', '.join(sorted(devices))}, but the program has "
                             f"{', '.join(sorted(program.meshes))}", hint="pass the devices of each mesh")
        for name, mesh in program.meshes.items():
            mine = list(devices[name])
            if len(mine) != mesh.size:
                raise UsageError(f"mesh {name} has {mesh.size} devices but got {len(mine)}",
                                 hint="pass one device for each position in the mesh")
            for number, device in zip(mesh.device_ids, mine, strict=True):
                if by_number.setdefault(number, device) != device:
                    raise UsageError(f"device {number} of the program is listed as two devices",
                                     hint="meshes that share device numbers share devices")
    else:
        everything = list(jax.devices() if devices is None else devices)
        numbers = sorted({number for mesh in program.meshes.values() for number in mesh.device_ids})
        if numbers[-1] >= len(everything):
            raise UsageError(f"the program needs {numbers[-1] + 1} devices but there are {len(everything)}",
                             location=program.name, hint="pass that many devices; for CPU devices, set "
                             f"XLA_FLAGS=--xla_force_host_platform_device_count={numbers[-1] + 1}")
        by_number = {number: everything[number] for number in numbers}
    platforms = sorted({device.platform for device in by_number.values()})
    if len(platforms) > 1:
        raise UsageError(f"the devices are of several platforms: {', '.join(platforms)}",
                         hint="pass devices of one kind")
    _check_shared(program, by_number)
    return PlacedMeshes(program, by_number)


def _check_shared(program: Program, by_number: dict[int, Any]) -> None:
    """Meshes may be the same devices, as for debugging on one, or share device numbers. They may not share devices
    under different numbers.
    """
    known: dict[Any, tuple[int, tuple[Any, ...]]] = {}
    for name, mesh in program.meshes.items():
        mine = tuple(by_number[number] for number in mesh.device_ids)
        if len(set(mine)) < len(mine):
            raise UsageError(f"mesh {name} has a device twice", hint="use each device once in a mesh")
        for number, device in zip(mesh.device_ids, mine, strict=True):
            other, before = known.setdefault(device, (number, mine))
            if other != number and before != mine:
                raise UsageError(f"mesh {name} shares {device}, but not all of its devices, with another mesh",
                                 hint="give meshes the same devices in the same order, or none in common")


def numpy_type(type_: MeshTensor) -> np.dtype:
    """The NumPy type of a value's elements."""
    return Value("", type_.shape, type_.element, "").dtype


def _names(axis: str, parts: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return parts[axis]


def _split(mesh: Mesh, used: set[str], where: str) -> tuple[list[tuple[str, int]], dict[str, tuple[str, ...]]]:
    """Axes cut at every boundary that a part of one has, and what each axis or part consists of."""
    axes: list[tuple[str, int]] = []
    parts: dict[str, tuple[str, ...]] = {}
    for name, size in mesh.axes:
        mine = {text: (int(match["before"]), int(match["size"])) for text in used
                if (match := _PART.fullmatch(text)) and match["name"] == name}
        edges = sorted({1, size, *(edge for before, part in mine.values() for edge in (before, before * part))})
        if any(high % low for low, high in pairwise(edges)):
            raise InputError(f'the parts of axis "{name}" do not nest', location=where,
                             hint="cut the values over parts that divide each other")
        pieces = [(f"{name}_{low}" if len(edges) > 2 else name, high // low, low)
                  for low, high in pairwise(edges)] or [(name, 1, 1)]
        axes += [(piece, count) for piece, count, _ in pieces]
        parts[name] = tuple(piece for piece, _, _ in pieces)
        for text, (before, part) in mine.items():
            parts[text] = tuple(piece for piece, _, low in pieces if before <= low < before * part)
    return axes, parts


# ---- puts values onto the mesh they belong to, and checks that arguments are there


def place_value(position: int, value: Any, type_: MeshTensor, sharding: NamedSharding, here: bool) -> jax.Array | None:
    """Puts one value onto its mesh.

    Args:
      position: the position of the argument, for errors.
      value: an array of the whole value; on every process the same.
      type_: the type it is to have.
      sharding: its sharding.
      here: whether this process has devices of the mesh.

    Returns:
      The array, with separate buffers unless it is already there; None when it lives elsewhere.

    Raises:
      UsageError: its shape or dtype differ, or it is spread over processes that do not hold all of it.
    """
    if not here:
        return None
    if isinstance(value, jax.Array):
        _check_kind(position, value, type_)
        if value.sharding is sharding or value.sharding.is_equivalent_to(sharding, value.ndim):
            return value
        local = value.sharding.addressable_devices
        if not value.is_fully_addressable and not (value.is_fully_replicated and local):
            raise UsageError(f"argument {position} is " + ("spread over other processes" if local else
                             "on devices of other processes alone"), hint="bring it to all of them with to_global or "
                             "hlorewrite.reshard, or pass its host values on every process")
        value = value.addressable_data(0) if not value.is_fully_addressable else value
    host = np.array(value, copy=True)  # the devices may keep the buffer and write over it
    _check_kind(position, host, type_)
    return jax.make_array_from_callback(type_.shape, sharding, lambda index: host[index], dtype=numpy_type(type_))


def check_arguments(arguments: Sequence[Any], kinds: Sequence[MeshTensor], shardings: Sequence[NamedSharding],
                    here: Sequence[bool], name: str) -> None:
    """Refuses arguments that are not where the program expects them.

    Raises:
      UsageError: the number of values, or the shape, dtype or placement of one, differs.
    """
    if len(arguments) != len(kinds):
        raise UsageError(f"the program has {len(kinds)} arguments but got {len(arguments)}", location=name,
                         hint="pass one array for each argument")
    for position, (value, sharding) in enumerate(zip(arguments, shardings, strict=True)):
        if not here[position]:
            continue
        if not isinstance(value, jax.Array):
            raise UsageError(f"argument {position} is not an array on devices", location=name,
                             hint="put host values onto their mesh with place(...)")
        type_ = kinds[position]
        if value.shape != type_.shape or value.sharding is not sharding:
            _check_kind(position, value, type_)
            if not value.sharding.is_equivalent_to(sharding, value.ndim):
                where = f"mesh {type_.mesh} with sharding {type_.sharding}"
                raise UsageError(f"argument {position} is not on {where}", location=name,
                                 hint="put it there with place(...)")


def _check_kind(position: int, value: Any, type_: MeshTensor) -> None:
    if tuple(value.shape) != type_.shape:
        raise UsageError(f"argument {position} has shape {list(value.shape)}, but the program needs "
                         f"{list(type_.shape)}", hint="pass an array of the program's shape")
    if value.dtype != numpy_type(type_):
        raise UsageError(f"argument {position} is {value.dtype}, but the program needs {numpy_type(type_)}",
                         hint="convert it first")


# ---- checks that a step's donated arguments are separate buffers

# Otherwise XLA would overwrite a buffer that is still read.


_HINT = "copy one of them with jnp.copy, or do not donate them"


class DonationCheck:
    """Refuses arguments that share a buffer if one of them is donated, as ``jax.jit`` does.

    Results of a step, and copies from the host, have separate buffers. While a loop passes on only these, comparing
    identities is enough. Any other array has to be asked for its buffer's address, which waits until the array is
    ready.

    Args:
      donated: positions of the donated arguments.
      name: the name of the program.
    """

    def __init__(self, donated: frozenset[int], name: str) -> None:
        self._donated, self._name = donated, name
        self._made: dict[int, weakref.ref] = {}

    def check(self, arguments: Sequence[jax.Array | None]) -> None:
        """Refuses a call whose donated arguments are deleted or share a buffer.

        Args:
          arguments: placed arrays; None for those of other processes.

        Raises:
          UsageError: two are one array, or share a buffer, or one is deleted.
        """
        if not self._donated:
            return
        given = [(position, value) for position, value in enumerate(arguments) if value is not None]
        if len({id(value) for _, value in given}) < len(given):
            self._refuse_shared([(id(value), position) for position, value in given])
        if all(self._is_made(value) for _, value in given):
            return
        places: list[tuple[int, int]] = []
        for position, value in given:
            if value.is_deleted():
                raise UsageError(f"argument {position} was donated to an earlier step (donate_argnums)",
                                 location=self._name, hint="pass the results of that step")
            if value.size:
                places += [(part.unsafe_buffer_pointer(), position) for part in private.single_device_arrays(value)]
        if len({place for place, _ in places}) < len(places):
            self._refuse_shared(places)

    def made(self, results: Sequence[jax.Array | None]) -> None:
        """Notes what a call returned, in place of what was noted before.

        Args:
          results: arrays with separate buffers.
        """
        self._made = {id(value): weakref.ref(value) for value in results if value is not None}

    def placed(self, values: Sequence[Any], arrays: Sequence[jax.Array | None]) -> None:
        """Notes arrays that were made to place values.

        Args:
          values: what was placed.
          arrays: the array to use for each: the original, or a copy in separate buffers.
        """
        self._made |= {id(array): weakref.ref(array) for value, array in zip(values, arrays, strict=True)
                       if array is not None and array is not value}

    def _is_made(self, value: jax.Array) -> bool:
        known = self._made.get(id(value))
        return known is not None and known() is value and not value.is_deleted()

    def _refuse_shared(self, places: Sequence[tuple[int, int]]) -> None:
        """Raises if a donated argument shares a place with another argument."""
        first: dict[int, int] = {}
        for place, position in places:
            other = first.setdefault(place, position)
            if other != position and not self._donated.isdisjoint((other, position)):
                raise UsageError(f"arguments {other} and {position} share one buffer, which is donated "
                                 "(donate_argnums)", location=self._name, hint=_HINT)
