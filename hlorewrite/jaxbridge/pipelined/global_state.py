"""The state of a pipeline as arrays over all of its processes, as checkpoints want them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from hlorewrite.jaxbridge.runtime.reshard import reshard

AXIS = "devices"


def global_sharding(shape: Sequence[int], devices: Sequence[Any]) -> NamedSharding:
    """A sharding of which every process has a part, as evenly as the shape allows.

    Args:
      shape: of the array.
      devices: of the pipeline.

    Returns:
      Cut along the first dimension that all devices divide; or else one that the processes divide, over one device
      of each; or else a copy on one device of each process.

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
    """An array of which every process of a pipeline has a part; all of them call it.

    Args:
      value: what a step returned, or a host value, the same on all processes.
      devices: of the pipeline.
      timeout_s: how long to wait for each other process, seconds.

    Returns:
      The array itself where every process has a part of it already.
    """
    if isinstance(value, jax.Array) and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        data = to_global(jax.random.key_data(value), devices, timeout_s)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(value))
    everyone = {device.process_index for device in devices}
    if isinstance(value, jax.Array) and processes_of(value.sharding) >= everyone:
        return value
    sharding = global_sharding(np.shape(value), devices)
    pipelined = isinstance(value, jax.Array) and isinstance(value.sharding, NamedSharding)
    if pipelined and len(everyone) > 1:
        return reshard(value, sharding, timeout_s=timeout_s)
    host = np.asarray(value)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index], dtype=host.dtype)


def moved_to(value: Any, sharding: NamedSharding, timeout_s: float) -> Any:
    """An array that is cut over several processes, brought to where a program takes it; any other as it is.

    The answer depends on the array's sharding alone, so that all processes move the same arrays.
    """
    if not isinstance(value, jax.Array) or value.is_fully_replicated or len(processes_of(value.sharding)) == 1 or \
            value.sharding.is_equivalent_to(sharding, value.ndim):
        return value
    return reshard(value, sharding, timeout_s=timeout_s)
