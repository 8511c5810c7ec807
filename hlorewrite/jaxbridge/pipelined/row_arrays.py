"""A step's arrays and its program's: a stack that is cut is one array over the meshes of its stages, without a copy."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.runtime.driver import PipelineDriver
from hlorewrite.jaxbridge.runtime.meshes import numpy_type
from hlorewrite.mpmd.rows import RowParts, row_parts

STAGES = "stages"
"""The axis over which the rows of a stack are cut; with underscores in front where a mesh has one of that name."""

Leaf = Any


class RowArrays:
    """Translates between a step's arguments and results and those of its program.

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

    def _sharding(self, group: RowParts, result: bool) -> NamedSharding:
        """How a step's argument or result lies: as its program's, or over the meshes of all of its parts."""
        own = [self._driver.meshes.sharding(self._types[result][place]) for place in group.positions]
        if not group.edges:
            return own[0]
        meshes = [each.mesh for each in own]
        name = STAGES
        # Ends: each round makes the name longer than a name of the mesh.
        while name in meshes[0].axis_names:
            name = f"_{name}"
        mesh = jax.sharding.Mesh(np.stack([np.asarray(each.devices) for each in meshes]), (name, *meshes[0].axis_names),
                                 axis_types=(jax.sharding.AxisType.Auto,) * (1 + len(meshes[0].axis_names)))
        return NamedSharding(mesh, PartitionSpec(name, *own[0].spec[1:]))

    def argument_shardings(self) -> list[NamedSharding]:
        """How each argument of the step lies."""
        return self._shardings[False]

    def positions(self, argument: int) -> tuple[int, ...]:
        """Where an argument of the step is among the program's."""
        return self._arguments[argument].positions

    def split(self, values: Sequence[Leaf]) -> list[Leaf]:
        """The program's arguments from the step's."""
        given: list[Leaf] = [None] * len(self._types[False])
        for value, group, sharding in zip(values, self._arguments, self._shardings[False], strict=True):
            parts = [value] if not group.edges else self._parts(value, group, sharding)
            for place, part in zip(group.positions, parts, strict=True):
                given[place] = part
        return given

    def _parts(self, value: Leaf, group: RowParts, sharding: NamedSharding) -> Sequence[Leaf]:
        known = self._known.get(id(value))
        if known is not None and known[0]() is value:
            return known[1]
        if isinstance(value, jax.Array) and value.sharding.is_equivalent_to(sharding, value.ndim):
            return self._of_shards(value, group)
        held = value if not isinstance(value, jax.Array) or value.is_fully_addressable else \
            value.addressable_data(0) if value.is_fully_replicated else None
        if held is None:
            return [value] * len(group.positions)  # refused where it is placed, by name
        host = np.asarray(held)
        return [host[low:high] for low, high in zip(group.edges[:-1], group.edges[1:], strict=True)]

    def _of_shards(self, value: jax.Array, group: RowParts) -> list[Leaf]:
        held = {shard.device: shard.data for shard in value.addressable_shards}
        parts: list[Leaf] = []
        for place in group.positions:
            type_ = self._types[False][place]
            sharding = self._driver.meshes.sharding(type_)
            mine = [held[device] for device in sharding.device_set if device in held]
            parts.append(jax.make_array_from_single_device_arrays(type_.shape, sharding, mine) if mine else None)
        return parts

    def join(self, results: Sequence[jax.Array | None]) -> list[jax.Array]:
        """The step's results from the program's; what lies on meshes of other processes has no shard here."""
        joined = []
        for group, sharding in zip(self._results, self._shardings[True], strict=True):
            parts = [results[place] for place in group.positions]
            type_ = self._types[True][group.positions[0]]
            if not group.edges and parts[0] is not None:
                joined.append(parts[0])
                continue
            shards = [shard.data for part in parts if part is not None for shard in part.addressable_shards]
            shape = type_.shape if not group.edges else (group.edges[-1], *type_.shape[1:])
            value = jax.make_array_from_single_device_arrays(shape, sharding, shards, dtype=numpy_type(type_))
            if group.edges:
                self._known[id(value)] = (weakref.ref(value, functools.partial(self._forget, id(value))), parts)
            joined.append(value)
        return joined

    def _forget(self, key: int, _: weakref.ref) -> None:
        self._known.pop(key, None)
