"""What ``patch_jit`` and ``hlorewrite exec`` cost where there is nothing to rewrite.

Prints the time a small module takes in the hook, the time from start to end of a program under ``exec`` next to the
same program alone (medians of interleaved runs).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

EIGHT = "--xla_force_host_platform_device_count=8"
ROOT = Path(__file__).resolve().parents[2]
RUNS = 9
PROGRAMS = {
    "no jax": "print('done')",
    "jax, one device": "import jax.numpy as jnp; print(jnp.sin(jnp.ones(8)).sum())",
    "jax, small modules for eight devices": (
        "import jax, jax.numpy as jnp; from jax.sharding import *; m = jax.make_mesh((8,), ('d',)); "
        "x = jax.device_put(jnp.ones((8, 8)), NamedSharding(m, PartitionSpec('d'))); print((x + 1).sum())"),
}


def main() -> None:
    """Prints the tables."""
    print(f"{'program':40} {'alone':>9} {'exec':>9} {'added':>9}")
    for name, program in PROGRAMS.items():
        alone, under = interleaved([sys.executable, "-c", program],
                                   [sys.executable, "-m", "hlorewrite", "exec", "--", sys.executable, "-c", program])
        print(f"{name:40} {alone:7.2f} s {under:7.2f} s {under - alone:7.2f} s")
    print(f"\na small module in the hook: {small_module_us():.1f} us")


def interleaved(first: list[str], second: list[str]) -> tuple[float, float]:
    """Median seconds of two commands, run in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    environment = dict(os.environ, JAX_PLATFORMS="cpu", XLA_FLAGS=EIGHT, TF_CPP_MIN_LOG_LEVEL="3",
                       PYTHONPATH=str(ROOT))
    for _ in range(RUNS):
        for command, column in zip((first, second), times, strict=True):
            start = time.perf_counter()
            subprocess.run(command, env=environment, check=True, capture_output=True)
            column.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def small_module_us() -> float:
    """Median microseconds that the hook adds to a module of a few ops for eight devices."""
    os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS=EIGHT)
    import jax
    import jax.numpy as jnp
    import numpy as np

    import hlorewrite
    from hlorewrite.jaxbridge.xla import private

    sharding = jax.sharding.NamedSharding(jax.make_mesh((8,), ("d",)), jax.sharding.PartitionSpec("d"))
    module = private.module_of(jax.jit(lambda x: (x * 2 + 1).sum()).lower(
        jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=sharding)))
    devices = np.array(jax.devices())
    original = private.compile_function()

    def compiles_nothing(backend: Any, computation: Any, devices: Any, compile_options: Any, host_callbacks: Any,
                         executable_devices: Any) -> None:
        """Has the parameters of JAX's function."""
    assert original is not None
    private.set_compile_function(compiles_nothing)
    samples = []
    with hlorewrite.patch_jit("comm", match="never"), hlorewrite.patch_jit("comm"):
        hooked = private.compile_function()
        assert hooked is not None
        for _ in range(2000):
            start = time.perf_counter()
            hooked(jax.devices()[0].client, module, devices, None, (), None)
            samples.append(time.perf_counter() - start)
    private.set_compile_function(original)
    return statistics.median(samples) * 1e6


if __name__ == "__main__":
    main()
