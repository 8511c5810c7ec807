"""Moves a JAX array to another sharding, on the same devices or on others, by a planned program."""

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from hlorewrite.cost.cluster.capacity import topology_of_kind
from hlorewrite.cost.cluster.topology_file import topology as topology_of
from hlorewrite.errors import PlanError, UsageError
from hlorewrite.ir import Format, emit, parse
from hlorewrite.jaxbridge.processes.agreement import Patience
from hlorewrite.jaxbridge.processes.consensus import agreement_of, check_same
from hlorewrite.jaxbridge.processes.store import TIMEOUT_S
from hlorewrite.jaxbridge.xla.own_compilations import own_compilation
from hlorewrite.pipelines.reshard import Layout, ReshardPlan, SolverBudget, from_boxes, network_of, plan_reshard
from hlorewrite.pipelines.reshard.lower import Lowered, lower
from hlorewrite.pipelines.runtime.group import solver_effort

_ELEMENT_TYPES = {"bool": "i1", "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
                  "complex64": "complex<f32>", "complex128": "complex<f64>"}


@dataclass(frozen=True)
class Resharder:
    """A compiled transfer from one sharding to another.

    Args:
      plan: the plan it follows.
      lowered: the module it runs.
      source: the sharding it takes.
      destination: the sharding it returns.
      call: the compiled program on the stacked source tiles.
      memory: XLA's memory statistics of the program on one device.
    """

    plan: ReshardPlan
    lowered: Lowered
    source: Sharding
    destination: Sharding
    call: Callable[[jax.Array], jax.Array]
    memory: Any

    def stack(self, array: jax.Array) -> jax.Array:
        """The array's tiles as one array over the devices of both meshes; tiles are not copied."""
        devices = _device_objects(self.source, self.destination)
        held = {shard.device.id: shard.data for shard in array.addressable_shards}
        tile = self.lowered.source_tile
        parts = []
        for device in devices:
            if device.process_index == jax.process_index():
                part = held.get(device.id)
                parts.append(jax.device_put(np.zeros(tile, array.dtype), device) if part is None
                             else part.reshape(tile) if part.shape != tile else part)
        shape = (len(devices) * tile[0], *tile[1:])
        return jax.make_array_from_single_device_arrays(shape, stacked_sharding(devices), parts, dtype=array.dtype)

    def unstack(self, stacked: jax.Array) -> jax.Array:
        """The result's tiles as an array with the destination's sharding."""
        wanted = {device.id for device in self.destination.device_set}
        shape = self.plan.tasks.destination.shape
        tile = self.plan.tasks.destination.tile_shape
        parts = [s.data if s.data.shape == tile else s.data.reshape(tile) for s in stacked.addressable_shards
                 if s.device.id in wanted]
        return jax.make_array_from_single_device_arrays(shape, self.destination, parts, dtype=stacked.dtype)

    def __call__(self, array: jax.Array) -> jax.Array:
        return self.unstack(self.call(self.stack(array)))


def reshard(array: jax.Array, dst_sharding: Sharding, strategy: str = "auto", *, order: str = "optimal",
            topology: str | None = None, chunk_bytes: int | None = None, timeout_s: float = TIMEOUT_S) -> jax.Array:
    """Moves an array to another sharding; the devices may be the same, different, or overlap.

    Every process that has a device of either sharding makes the same call.

    Args:
      array: the array.
      dst_sharding: the new sharding.
      strategy: ``auto``, ``broadcast``, ``send-recv``, ``trees``, ``all-gather`` or ``global-all-gather``.
      order: ``optimal``, ``size`` or ``naive``.
      topology: name of the cluster's servers, for the cost model; guessed from the devices by default.
      chunk_bytes: memory that a device may use in addition to its two tiles; by default the cost model chooses it.
      timeout_s: how long to wait for each other process.

    Returns:
      The same values with the new sharding, bit for bit.

    Raises:
      UsageError: the sharding does not fit the shape, or a name is unknown.
      PlanError: processes disagree on the plan, or one does not arrive.

    Example:
      >>> import jax, numpy as np
      >>> from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
      >>> there = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("x",)), P("x"))
      >>> reshard(jax.numpy.arange(4), there).sharding == there
      True
    """
    program = resharder(array.shape, array.dtype, array.sharding, dst_sharding, strategy, order=order,
                        topology=topology, chunk_bytes=chunk_bytes, timeout_s=timeout_s)
    return _untransferred(array, dst_sharding) if program is None else program(array)


def resharder(shape: Sequence[int], dtype: Any, source: Sharding, destination: Sharding, strategy: str = "auto", *,
              order: str = "optimal", topology: str | None = None, chunk_bytes: int | None = None,
              timeout_s: float = TIMEOUT_S) -> Resharder | None:
    """Plans, lowers and compiles a transfer once, to be called often.

    Args:
      shape: the array's shape.
      dtype: its dtype.
      source: the sharding it has.
      destination: the sharding it is to have.
      strategy: as for ``reshard``.
      order: as for ``reshard``.
      topology: as for ``reshard``.
      chunk_bytes: as for ``reshard``.
      timeout_s: as for ``reshard``.

    Returns:
      The compiled transfer; None for an array without elements or when all is on one device.
    """
    shape = tuple(int(size) for size in shape)
    _check(shape, dtype, source, destination)
    if not np.prod(shape, dtype=np.int64) or len(_device_objects(source, destination)) == 1:
        return None
    members = {device.process_index for device in _device_objects(source, destination)}
    agreement = agreement_of("resharding", members, Patience(timeout_s, timeout_s))
    request = ReshardRequest(shape, np.dtype(dtype), source, destination, strategy=strategy, order=order,
                             topology=topology, chunk_bytes=chunk_bytes, effort=solver_effort(agreement))
    plan, lowered = _planned(request)
    check_same(agreement, "plan", f"{plan.digest} {np.dtype(dtype)} {lowered.chunk_bytes}")
    return _compiled(request)


class ReshardRequest(NamedTuple):
    """What is to be moved, and how: equal requests have one plan."""

    shape: tuple[int, ...]
    dtype: np.dtype
    source: Sharding
    destination: Sharding
    strategy: str
    order: str
    topology: str | None
    chunk_bytes: int | None
    effort: float


@functools.lru_cache(maxsize=256)
def _planned(request: ReshardRequest) -> tuple[ReshardPlan, Lowered]:
    devices = _device_objects(request.source, request.destination)
    cluster = topology_of(request.topology or guessed_topology(devices))
    processes = {device.process_index for device in devices}
    hosts = {process: host for host, process in enumerate(sorted(processes))}
    network = network_of(cluster, {device.id: hosts[device.process_index] for device in devices})
    source, destination = (layout_of(request.shape, each) for each in (request.source, request.destination))
    plan = plan_reshard(source, destination, request.dtype.itemsize, network, strategy=request.strategy,
                        order=request.order, budget=SolverBudget(request.effort))
    target = "cpu" if devices[0].platform == "cpu" else "gpu"
    return plan, lower(plan, element_type(request.dtype), target, request.chunk_bytes)


@functools.lru_cache(maxsize=256)
def _compiled(request: ReshardRequest) -> Resharder:
    plan, lowered = _planned(request)
    _, dtype, source, destination = request[:4]
    program = compile_lowered(lowered, dtype, _device_objects(source, destination))
    return Resharder(plan, lowered, source, destination, program, program.memory_analysis())


def compile_lowered(lowered: Lowered, dtype: Any, devices: Sequence[Any], token: bool = False) -> jax.stages.Compiled:
    """Compiles the module of a plan.

    Args:
      lowered: the module.
      dtype: the dtype of the array.
      devices: the devices of both meshes in the order of ``lowered.devices``.
      token: also return a scalar that is ready when the program has run.

    Returns:
      A function of the source tiles stacked along dimension 0; it returns the destination tiles likewise.
    """
    sharding = stacked_sharding(devices)
    size = len(devices)
    give = jax.ShapeDtypeStruct((size * lowered.source_tile[0], *lowered.source_tile[1:]), dtype)
    take = (size * lowered.destination_tile[0], *lowered.destination_tile[1:])
    # An exported function of the same signature lends its envelope; the module inside is the plan's.
    shell = jax.export.export(jax.jit(lambda x: jnp.zeros(take, dtype), in_shardings=sharding,
                                      out_shardings=sharding, keep_unused=True), platforms=[devices[0].platform])(give)
    artifact = emit(parse(lowered.text, name="resharding"), Format.PORTABLE)
    exported = dataclasses.replace(shell, mlir_module_serialized=artifact)
    everywhere = NamedSharding(sharding.mesh, PartitionSpec())
    move = jax.jit(exported.call, in_shardings=sharding, out_shardings=sharding) if not token else \
        jax.jit(lambda x: (exported.call(x), jnp.int8(0)), in_shardings=sharding, out_shardings=(sharding, everywhere))
    with own_compilation():
        return move.lower(give).compile()


def layout_of(shape: Sequence[int], sharding: Sharding) -> Layout:
    """The layout of a JAX sharding.

    Args:
      shape: the array's shape.
      sharding: any sharding that cuts it into a grid.

    Returns:
      The layout, with JAX's device ids.
    """
    boxes = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        boxes[device.id] = [part.indices(size)[:2] for part, size in zip(index or (), shape, strict=False)]
    return from_boxes(shape, boxes)


def element_type(dtype: Any) -> str:
    """MLIR's name of a NumPy dtype.

    Raises:
      UsageError: MLIR has none.

    Example:
      >>> element_type(np.dtype("uint8")), element_type(jnp.dtype(jnp.float8_e4m3fn))
      ('ui8', 'f8E4M3FN')
    """
    name = np.dtype(dtype).name
    if name in _ELEMENT_TYPES:
        return _ELEMENT_TYPES[name]
    if match := re.fullmatch(r"(u?)int(\d+)", name):
        return f"{match[1] and 'u'}i{match[2]}"
    if match := re.fullmatch(r"float(\d+)_(e\w+)", name):
        return f"f{match[1]}{match[2].upper()}"
    raise UsageError(f"arrays of {name} cannot be resharded", hint="convert to a numeric dtype")


def _check(shape: tuple[int, ...], dtype: Any, source: Sharding, destination: Sharding) -> None:
    if jnp.issubdtype(dtype, jax.dtypes.extended):
        raise UsageError(f"arrays of {dtype} cannot be resharded", hint="use jax.random.key_data")
    for sharding, name in ((source, "source"), (destination, "destination")):
        try:
            sharding.shard_shape(shape)
        except (ValueError, IndexError) as error:  # a spec longer than the shape is an IndexError in JAX
            what = str(error).splitlines()[0]
            raise UsageError(f"the {name} sharding does not fit shape {list(shape)} ({what})",
                             hint="pass one entry per dimension, and axes that divide it") from error
    platforms = {device.platform for device in _device_objects(source, destination)}
    if len(platforms) > 1:
        raise PlanError(f"source and destination are on different platforms: {', '.join(sorted(platforms))}",
                        hint="reshard between devices of one kind, or copy through the host")


@functools.lru_cache(maxsize=256)
def _device_objects(source: Sharding, destination: Sharding) -> tuple[Any, ...]:
    """The devices of both shardings in the order of their ids."""
    return tuple(sorted(source.device_set | destination.device_set, key=lambda device: device.id))


def stacked_sharding(devices: Sequence[Any]) -> NamedSharding:
    """The sharding of tiles stacked along dimension 0, one for each device."""
    return NamedSharding(jax.sharding.Mesh(np.array(devices), ("d",)), PartitionSpec("d"))


def guessed_topology(devices: Sequence[Any]) -> str:
    """The topology whose GPU the devices name; Ethernet servers for anything else."""
    return topology_of_kind(devices[0].device_kind) or "p3.8xlarge"


def _untransferred(array: jax.Array, destination: Sharding) -> jax.Array:
    """The array with its new sharding where nothing moves: it is empty, or on the one device it stays on."""
    if array.size:
        parts = [shard.data for shard in array.addressable_shards]
        return jax.make_array_from_single_device_arrays(array.shape, destination, parts, dtype=array.dtype)
    return jax.make_array_from_callback(array.shape, destination,
                                        lambda index: np.zeros(array.shape, array.dtype)[index], dtype=array.dtype)
