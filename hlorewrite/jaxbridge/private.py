"""Every private name of jax and jaxlib that this package touches, in one place.

``tests/unit/jaxbridge/test_private.py`` names each, so that a new JAX breaks one test and one file. Works with jax
0.10.2 and 0.11.x.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax._src import xla_bridge
from jaxlib import _jax, xla_client  # pyright: ignore[reportAttributeAccessIssue]

from hlorewrite.ir.binding import ir

# ---- clients and devices


def cpu_client(devices: int) -> Any:
    """A CPU client of its own with any number of devices; JAX's own backend is left alone."""
    return xla_client.make_cpu_client(num_devices=devices)


def described_gpu_devices(name: str, description: str, hosts: int, gpus: int) -> list[Any]:
    """Compile-only devices of described GPUs; raises ``NotImplementedError`` without the CUDA plug-in."""
    topology = _cuda_topology()(name, target_config=description, topology=f"1x{hosts}x{gpus}")
    return list(topology._make_compile_only_devices())


@functools.cache
def _cuda_topology() -> Callable[..., Any]:
    """What makes a topology of the CUDA plug-in.

    JAX registers the plug-in while it looks for backends, unless cuDNN is missing. Compilation for described GPUs does
    not need cuDNN, so the library is then loaded here; after JAX has looked, so that it is not loaded twice.
    """
    with quiet_plugins():
        jax.devices("cpu")
    if "cuda" in xla_bridge._topology_factories:
        return xla_bridge._topology_factories["cuda"]
    for package in ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12"):
        if importlib.util.find_spec(package) is not None:
            path = importlib.import_module(package)._get_library_path()
            api = xla_client.load_pjrt_plugin_dynamically("cuda", str(path))
            return functools.partial(xla_client.make_c_api_device_topology, api)
    raise NotImplementedError("cuda")


@contextmanager
def quiet_plugins() -> Iterator[None]:
    """Keeps JAX from printing a traceback for a plug-in that finds no driver; errors of ours say it in a sentence."""
    log = logging.getLogger("jax._src.xla_bridge")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def client_devices(client: Any) -> list[Any]:
    """All devices of a client."""
    return list(client.devices())


# ---- compiling a module without tracing anything


def compile_options(devices: int, *, shardy: bool, outputs: Sequence[bool], inputs: Sequence[bool],
                    overrides: Mapping[str, str | bool | int]) -> Any:
    """XLA's options for one SPMD module.

    Args:
      devices: partitions.
      shardy: the module carries ``sdy`` shardings.
      outputs: for each output, whether XLA may choose its sharding.
      inputs: the same for inputs.
      overrides: XLA flags for this compilation alone, without dashes.
    """
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = 1, devices
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(devices).reshape(1, devices))
    build = options.executable_build_options
    build.num_partitions = devices
    build.device_assignment = options.device_assignment
    build.use_spmd_partitioning = devices > 1
    build.use_shardy_partitioner = shardy
    build.allow_spmd_sharding_propagation_to_output = list(outputs) or [True]
    build.allow_spmd_sharding_propagation_to_parameters = list(inputs) or [True]
    options.env_option_overrides = list(overrides.items())
    return options


def compile_module(devices: Sequence[Any], module: ir.Module, options: Any, *, load: bool) -> Any:
    """An XLA executable of an MLIR module: to look at, or loaded and fit to run."""
    client = devices[0].client
    device_list = _jax.DeviceList(tuple(devices))
    if load or client.platform == "cpu":  # the CPU client has no compiler that does not load
        return client.compile_and_load(module, device_list, options)
    return client.compile(module, device_list, options)


def hlo_text(executable: Any) -> str:
    """Optimised HLO."""
    return "\n".join(module.to_string() for module in executable.hlo_modules())


def memory_stats(executable: Any) -> tuple[int, int, int, int]:
    """(argument, output, temporary, aliased) bytes on one device."""
    stats = executable.get_compiled_memory_stats()
    return (stats.argument_size_in_bytes, stats.output_size_in_bytes, stats.temp_size_in_bytes,
            stats.alias_size_in_bytes)


# ---- running a loaded executable


def execute(executable: Any, arguments: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """Runs an executable on its local devices.

    Args:
      executable: loaded, of a single process.
      arguments: global arrays, one for each parameter.

    Returns:
      For each output, what each device holds of it, in the order of the devices.
    """
    devices = executable.local_devices()
    shardings = executable.get_parameter_shardings() or [None] * len(arguments)
    placed = [_placed(value, sharding, devices) for value, sharding in zip(arguments, shardings, strict=True)]
    results = executable.execute_sharded(placed)
    parts = results.disassemble_into_single_device_arrays()
    order = {device.id: place for place, device in enumerate(devices)}
    return [[np.asarray(part) for part in sorted(output, key=lambda a: order[next(iter(a.devices())).id])]
            for output in parts]


def _placed(value: np.ndarray, sharding: Any, devices: Sequence[Any]) -> jax.Array:
    if sharding is None:
        where: Any = jax.sharding.SingleDeviceSharding(devices[0])
    else:
        where = _jax_sharding(sharding, devices)
    return jax.make_array_from_callback(value.shape, where, lambda index: value[index])


def _jax_sharding(sharding: Any, devices: Sequence[Any]) -> Any:
    from jax._src.sharding_impls import GSPMDSharding
    return GSPMDSharding(_jax.DeviceList(tuple(devices)), sharding)
