"""A step's arrays and its program's: a stack that is cut is one array over the meshes of its stages, without a copy."""

import functools
import weakref
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from hlorewrite.analysis.mesh import Mesh
from hlorewrite.errors import UsageError
from hlorewrite.ir.module import Module
from hlorewrite.pipelines.decorator.stage_array import StageArray
from hlorewrite.pipelines.decorator.state import moved_to, rows_moved_to
from hlorewrite.pipelines.mpmd.program import Program
from hlorewrite.pipelines.mpmd.rows import RowParts, row_parts
from hlorewrite.pipelines.runtime.driver import PipelineDriver
from hlorewrite.pipelines.runtime.meshes import numpy_type

STAGES = "stages"
"""The axis over which the rows of a stack are cut; with underscores in front if a mesh has an axis of that name."""

Leaf = Any


class RowArrays:
    """Translates between a step's arguments and results and those of its program.

    A stack whose parts are of one size and are on different meshes of one size is a ``jax.Array``, any other a
    ``StageArray``.

    Args:
      module: the program.
      driver: its driver.
    """

    def __init__(self, module: Module, driver: PipelineDriver) -> None:
        program, self._driver = driver.program, driver
        self._arguments, self._results = row_parts(module)
        self._types = {False: [program.types[number] for number in program.arguments],
                       True: [program.types[number] for number in program.results]}
        self._shardings = {result: [self._sharding(group, result) for group in groups]
                           for result, groups in ((False, self._arguments), (True, self._results))}
        self._known: dict[int, tuple[weakref.ref, list[Any]]] = {}

    def _own(self, group: RowParts, result: bool) -> list[NamedSharding]:
        """How each part of a step's argument or result is placed."""
        return [self._driver.meshes.sharding(self._types[result][place]) for place in group.positions]

    def _sharding(self, group: RowParts, result: bool) -> NamedSharding | None:
        """The sharding of a step's argument or result: its program's, or one over the meshes of all its parts; None if
        its parts are not the shards of one array.
        """
        own = self._own(group, result)
        if not group.edges:
            return own[0]
        meshes = [each.mesh for each in own]
        devices = [device for each in meshes for device in np.asarray(each.devices).flat]
        if not _is_one_array(group, [self._types[result][place].mesh for place in group.positions],
                             self._driver.program.meshes) or len(set(devices)) < len(devices):
            return None
        name = STAGES
        # Ends: each round makes the name longer than a name of the mesh.
        while name in meshes[0].axis_names:
            name = f"_{name}"
        mesh = jax.sharding.Mesh(np.stack([np.asarray(each.devices) for each in meshes]), (name, *meshes[0].axis_names),
                                 axis_types=(jax.sharding.AxisType.Auto,) * (1 + len(meshes[0].axis_names)))
        return NamedSharding(mesh, PartitionSpec(name, *own[0].spec[1:]))

    def brought(self, values: Sequence[Leaf], timeout_s: float) -> list[Leaf]:
        """Arguments of the step; those that are cut over several processes are moved to where the program takes them.

        Args:
          values: the arguments.
          timeout_s: how long to wait for each other process, seconds.
        """
        return [rows_moved_to(value, group.edges, self._own(group, False), timeout_s) if sharding is None
                else moved_to(value, sharding, timeout_s)
                for value, group, sharding in zip(values, self._arguments, self._shardings[False], strict=True)]

    def positions(self, argument: int) -> tuple[int, ...]:
        """Where an argument of the step is among the program's."""
        return self._arguments[argument].positions

    def owners(self) -> list[frozenset[int]]:
        """For each result of the step, the processes where the meshes of its parts begin."""
        meshes = self._driver.meshes
        return [frozenset(meshes.of_mesh(self._types[True][place].mesh)[0].process_index for place in group.positions)
                for group in self._results]

    def split(self, values: Sequence[Leaf]) -> list[Leaf]:
        """The program's arguments from the step's.

        Raises:
          UsageError: a stack of several processes is cut in another way.
        """
        given: list[Leaf] = [None] * len(self._types[False])
        for number, (value, group) in enumerate(zip(values, self._arguments, strict=True)):
            if isinstance(value, StageArray) and value.edges != group.edges:
                value = _on_the_host(value, number)
            parts = [value] if not group.edges else self._parts(value, group, self._shardings[False][number])
            for place, part in zip(group.positions, parts, strict=True):
                given[place] = part
        return given

    def _parts(self, value: Leaf, group: RowParts, sharding: NamedSharding | None) -> Sequence[Leaf]:
        if isinstance(value, StageArray):
            return value.parts
        known = self._known.get(id(value))
        if known is not None and known[0]() is value:
            return known[1]
        if sharding is not None and isinstance(value, jax.Array) and value.sharding.is_equivalent_to(sharding,
                                                                                                       value.ndim):
            return self._of_shards(value, group)
        held = value if not isinstance(value, jax.Array) or value.is_fully_addressable else \
            value.addressable_data(0) if value.is_fully_replicated else None
        if held is None:
            return [value] * len(group.positions)  # refused where it is placed, by name
        host = np.asarray(held)
        return [host[low:high] for low, high in pairwise(group.edges)]

    def _of_shards(self, value: jax.Array, group: RowParts) -> list[Leaf]:
        held = {shard.device: shard.data for shard in value.addressable_shards}
        parts: list[Leaf] = []
        for place in group.positions:
            type_ = self._types[False][place]
            sharding = self._driver.meshes.sharding(type_)
            mine = [held[device] for device in sharding.device_set if device in held]
            parts.append(jax.make_array_from_single_device_arrays(type_.shape, sharding, mine) if mine else None)
        return parts

    def join(self, results: Sequence[jax.Array | None]) -> list[jax.Array | StageArray]:
        """The step's results from the program's; what is on meshes of other processes has no shard here."""
        joined = []
        for group, sharding in zip(self._results, self._shardings[True], strict=True):
            parts = [results[place] for place in group.positions]
            type_ = self._types[True][group.positions[0]]
            if sharding is None:
                joined.append(StageArray([self._here(part, place) for part, place in
                                          zip(parts, group.positions, strict=True)]))
                continue
            if not group.edges:
                joined.append(self._here(parts[0], group.positions[0]))
                continue
            shards = [shard.data for part in parts if part is not None for shard in part.addressable_shards]
            value = jax.make_array_from_single_device_arrays((group.edges[-1], *type_.shape[1:]), sharding, shards,
                                                             dtype=numpy_type(type_))
            self._known[id(value)] = (weakref.ref(value, functools.partial(self._forget, id(value))), parts)
            joined.append(value)
        return joined

    def _here(self, result: jax.Array | None, place: int) -> jax.Array:
        """A result of the program; without shards where this process has no device of its mesh."""
        if result is not None:
            return result
        type_ = self._types[True][place]
        return jax.make_array_from_single_device_arrays(type_.shape, self._driver.meshes.sharding(type_), [],
                                                        dtype=numpy_type(type_))

    def _forget(self, key: int, _: weakref.ref) -> None:
        self._known.pop(key, None)


def _is_one_array(group: RowParts, names: Sequence[str], meshes: Mapping[str, Mesh]) -> bool:
    """Whether parts are the shards of one ``jax.Array``: all of one size, each on another mesh, these of one size."""
    return len({high - low for low, high in pairwise(group.edges)}) <= 1 and len(set(names)) == len(names) and \
        len({meshes[name].axes for name in names}) == 1


def stage_array_results(module: Module, program: Program) -> list[int]:
    """The results of a step that are a ``StageArray``, by number.

    Args:
      module: the step's program.
      program: the same as data.
    """
    names = [program.types[number].mesh for number in program.results]
    return [number for number, group in enumerate(row_parts(module)[1])
            if not _is_one_array(group, [names[place] for place in group.positions], program.meshes)]


def _on_the_host(value: StageArray, number: int) -> np.ndarray:
    """All rows of a stack that the program cuts in another way."""
    if not all(each.is_fully_addressable for each in value.parts):
        raise UsageError(f"argument {number} has parts of rows {list(value.edges)} on other processes, and the step is "
                         "cut differently", hint="pass the result of to_global")
    return np.asarray(value)
