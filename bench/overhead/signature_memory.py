"""What 100 signatures of a step cost in memory under ``jax.jit`` and under ``hlorewrite.optimize``.

``python bench/overhead/signature_memory.py`` runs each in a process of its own, and prints by how much the process
grew between the 10th signature and the last, in MiB. Costs paid once (passes, rule files) are in the first ten.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys

DEVICES, FIRST, LAST = 8, 10, 110


def resident() -> float:
    """Resident memory of this process, MiB, after what is free was given back."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def grown(optimized: bool) -> float:
    """MiB that signatures ``FIRST`` to ``LAST`` keep."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import AxisType
    from jax.sharding import PartitionSpec as P

    import hlorewrite

    jax.config.update("jax_num_cpu_devices", DEVICES)
    mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))

    def step(weights: jax.Array, rows: jax.Array) -> jax.Array:
        def body(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
            return total + lax.pmean(jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(weights), "data"), None
        return weights - 0.1 * lax.scan(body, jnp.zeros_like(weights), rows)[0]

    jitted = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P(None, "data")), out_specs=P(), check_vma=False))
    called = hlorewrite.optimize(jitted) if optimized else jitted
    weights, start = jnp.ones((8, 8)), 0.0
    for number in range(LAST):
        if number == FIRST:
            start = resident()
        called(weights, jnp.ones((4, DEVICES * (number + 1), 8))).block_until_ready()
    return resident() - start


def main() -> None:
    """Measures both, each in a fresh process."""
    found = {}
    for name in ("jit", "optimize"):
        done = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True)
        found[name] = float(done.stdout)
    print(f"{LAST - FIRST} signatures: jax.jit {found['jit']:.1f} MiB, optimize {found['optimize']:.1f} MiB, "
          f"{found['optimize'] / found['jit']:.2f} times")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(grown(sys.argv[1] == "optimize"))
    else:
        main()
