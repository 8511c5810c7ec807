"""One process of a program of ``moments.py``: it compiles, runs a first step, steps, then steps with saves.

Usage: ``moments_worker.py PORT PROCESS PROCESSES PROGRAM WAIT TIMEOUT_S FOLDER``. PROGRAM is ``step`` (decorated) or
``jit`` (under ``patch_jit``); WAIT is a key of ``WAITS``. Prints ``PHASE NAME`` where a phase begins, and ``ALIVE``
with each step.
"""

from __future__ import annotations

import operator
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite

STEPS = 100
"""Steps before those with saves begin."""


def _in_place(result: Any) -> None:
    host = np.zeros((), np.float32)
    host[...] = result.addressable_data(0)


WAITS: dict[str, Callable[[Any], object]] = {
    "method": lambda result: result.block_until_ready(),
    "method of a shard": lambda result: result.addressable_data(0).block_until_ready(),
    "function": lambda result: jax.block_until_ready({"loss": [result]}),
    "float": lambda result: float(result),
    "int": lambda result: int(result),
    "bool": lambda result: bool(result),
    "item": lambda result: result.item(),
    "tolist": lambda result: result.tolist(),
    "asarray": lambda result: np.asarray(result),
    "stack": lambda result: np.stack([result, result]),
    "in place": _in_place,
    "device_get": lambda result: jax.device_get([result]),
    "text": lambda result: f"{result} {result!r}",
    "format": lambda result: f"{result:.3f}",
    "compared": lambda result: result > 3 or None,
    "mapped": lambda result: list(map(operator.methodcaller("block_until_ready"), [result])),
    "method by name": lambda result: getattr(result, "block_until_ready")(),  # noqa: B009
    "not at all": lambda result: None,
}
"""The ways in which a program waits for what a step gives."""


def local(batches: jax.Array) -> jax.Array:
    """Sums over micro-batches and devices."""
    def body(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
        return total + jax.lax.pmean(batch.sum(), "data"), None

    return jax.lax.scan(body, jnp.zeros(()), batches)[0]


def saved(result: jax.Array, batches: jax.Array, folder: Path, process: int) -> None:
    """Writes this process's part of a state, and waits until all have."""
    parts = {f"p{at}": np.asarray(shard.data) for at, shard in enumerate(batches.addressable_shards)}
    np.savez(folder / f"{process}.npz", result=np.asarray(result), **parts)
    multihost_utils.sync_global_devices("saved")


def begins(phase: str) -> None:
    """Says that a phase begins."""
    print("PHASE", phase, time.time(), flush=True)


def main() -> None:
    """Runs until it is ended."""
    port, process, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    program, wait, timeout_s, folder = sys.argv[4], WAITS[sys.argv[5]], float(sys.argv[6]), Path(sys.argv[7])
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)
    mesh = jax.make_mesh((2 * processes,), ("data",), axis_types=(AxisType.Auto,))
    step: Any = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P(None, "data"), out_specs=P(), check_vma=False))
    if program == "step":
        step = hlorewrite.optimize(step, passes="comm-shift", timeout_s=timeout_s)
    else:
        hlorewrite.patch_jit("comm-shift", timeout_s=timeout_s)
    rows = np.arange(8 * processes, dtype=np.float32).reshape(4, -1)
    batches = jax.make_array_from_callback(rows.shape, NamedSharding(mesh, P(None, "data")), lambda index: rows[index])
    begins("compile")
    step.lower(batches).compile()
    begins("first call")
    wait(step(batches))
    begins("steps")
    number = 0
    # Ends: when the process is ended from outside.
    while True:
        result = step(batches)
        wait(result)
        number += 1
        print("ALIVE", number, flush=True)
        if number == STEPS:
            begins("save")
        if number >= STEPS:
            saved(result, batches, folder, process)


if __name__ == "__main__":
    main()
