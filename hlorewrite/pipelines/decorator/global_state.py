"""The state of a pipeline as arrays over all of its processes, as checkpoints want them."""

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from hlorewrite.pipelines.decorator.stage_array import StageArray
from hlorewrite.pipelines.runtime.reshard import reshard

AXIS = "devices"


def global_sharding(shape: Sequence[int], devices: Sequence[Any]) -> NamedSharding:
    """A sharding that gives every process a part, as evenly as the shape allows.

    Args:
      shape: the shape of the array.
      devices: the devices of the pipeline.

    Returns:
      It is cut along the first dimension that the number of devices divides. Failing that, along one that the number of
      processes divides, over one device of each. Failing that, a copy on one device of each process.

    Example:
      >>> tuple(global_sharding((3, 4), jax.devices()[:1]).spec)
      ('devices',)
    """
    first: dict[int, Any] = {}
    for device in devices:
        first.setdefault(device.process_index, device)
    for chosen in (list(devices), list(first.values())):
        mesh = jax.sharding.Mesh(np.array(chosen), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,))
        for dimension, size in enumerate(shape):
            if size and size % len(chosen) == 0:
                return NamedSharding(mesh, PartitionSpec(*(None,) * dimension, AXIS))
    mesh = jax.sharding.Mesh(np.array(list(first.values())), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,))
    return NamedSharding(mesh, PartitionSpec())


def processes_of(sharding: Sharding) -> set[int]:
    """The processes that have devices of a sharding."""
    return {device.process_index for device in sharding.device_set}


def to_global(value: Any, devices: Sequence[Any], timeout_s: float) -> Any:
    """Makes an array that every process of a pipeline has a part of; every process must call this.

    Args:
      value: what a step returned, or a host value, the same on all processes.
      devices: the devices of the pipeline.
      timeout_s: how long to wait for each other process, seconds.

    Returns:
      The array itself where every process has a part of it already; a ``StageArray`` as one array.
    """
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        data = to_global(jax.random.key_data(value), devices, timeout_s)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(value))
    everyone = {device.process_index for device in devices}
    if isinstance(value, StageArray) and len(everyone) > 1:
        return _joined(value, devices, timeout_s)
    if isinstance(value, jax.Array) and processes_of(value.sharding) >= everyone:
        return value
    sharding = global_sharding(np.shape(value), devices)
    if isinstance(value, jax.Array) and isinstance(value.sharding, NamedSharding) and len(everyone) > 1:
        return reshard(value, sharding, timeout_s=timeout_s)
    host = np.asarray(value)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index], dtype=host.dtype)


def _joined(value: StageArray, devices: Sequence[Any], timeout_s: float) -> jax.Array:
    """The rows of all stages as one array over all processes; any cut is along a dimension other than the rows."""
    sharding = global_sharding((1, *value.shape[1:]), devices)
    parts = [reshard(part, sharding, timeout_s=timeout_s) for part in value.parts]
    return jax.jit(lambda *rows: jnp.concatenate(rows), out_shardings=sharding)(*parts)


def rows_moved_to(value: Any, edges: Sequence[int], shardings: Sequence[NamedSharding], timeout_s: float) -> Any:
    """The rows of each stage of an array that is cut over several processes; any other array as it is.

    Args:
      value: the value of the whole stack.
      edges: the first row of each stage, and the number of rows.
      shardings: where the rows of each stage go.
      timeout_s: how long to wait for each other process, seconds.
    """
    if not isinstance(value, jax.Array) or value.is_fully_replicated or len(processes_of(value.sharding)) == 1 or \
            not isinstance(value.sharding, NamedSharding):
        return value
    whole_rows = NamedSharding(value.sharding.mesh, PartitionSpec(None, *value.sharding.spec[1:]))
    taken = (jax.jit(functools.partial(jax.lax.slice_in_dim, start_index=low, limit_index=high),
                     out_shardings=whole_rows)(value) for low, high in pairwise(edges))
    return StageArray([reshard(part, sharding, timeout_s=timeout_s)
                       for part, sharding in zip(taken, shardings, strict=True)])


def moved_to(value: Any, sharding: NamedSharding, timeout_s: float) -> Any:
    """An array that is cut over several processes, moved to where a program takes it; any other array as it is.

    The answer depends on the array's sharding alone, so that all processes move the same arrays.
    """
    if not isinstance(value, jax.Array) or value.is_fully_replicated or len(processes_of(value.sharding)) == 1 or \
            value.sharding.is_equivalent_to(sharding, value.ndim):
        return value
    return reshard(value, sharding, timeout_s=timeout_s)
