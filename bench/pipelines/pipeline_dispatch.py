"""What the driver's own work can add to a step at most: its CPU time on the host, next to the step's ideal time.

    python bench/pipelines/pipeline_dispatch.py                       # 8 stages, 64 micro-batches, fragments of 5 ms
    python bench/pipelines/pipeline_dispatch.py --microbatches 16

The fragments of the step that runs here take microseconds, so the time of the calling thread is what the driver and
XLA's dispatch cost. The ideal step is that of fragments of ``--fragment-ms`` under 1F1B: (m + n - 1) forwards and as
many backwards. The share is what would be added if no call were made while devices work; most are. The driver's own
part is what a step costs whose calls do nothing; the rest is JAX's and XLA's dispatch, which any driver needs. CPU
time of the thread, not wall time, so that what else the machine does counts little.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("PJRT_NPROC", "64")  # so that the driver never waits for threads of XLA's pool
sys.path += [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1] / "common")]
WIDTH = 16


def host_seconds(stages: int, microbatches: int, steps: int) -> tuple[int, float, float]:
    """Calls of a step, the median CPU seconds of the thread that makes them, and those of the driver alone."""
    import jax
    import jax.numpy as jnp
    from idle_driver import idle_driver

    import hlorewrite

    def loss_fn(params: list[jax.Array], rows: jax.Array, targets: jax.Array) -> jax.Array:
        for index, weight in enumerate(params):
            rows = jnp.tanh(hlorewrite.stage(rows, index) @ weight)
        return jnp.mean((rows - targets) ** 2)

    def step(params: list[jax.Array], batch: tuple[jax.Array, jax.Array]) -> tuple[list[jax.Array], jax.Array]:
        loss, grads = hlorewrite.mean_over_microbatches(
            lambda part: jax.value_and_grad(loss_fn)(params, *part), batch, microbatches)
        return [p - 0.1 * g for p, g in zip(params, grads, strict=True)], loss

    params = [0.5 * jnp.eye(WIDTH) for _ in range(stages)]
    batch = (jnp.ones((2 * microbatches, WIDTH)), jnp.zeros((2 * microbatches, WIDTH)))
    lowered = hlorewrite.pipeline(step, meshes=[(1,)] * stages, donate_argnums=0).lower(params, batch)
    driver = lowered.compile().driver
    idle, seconds, own = idle_driver(driver), list[float](), list[float]()
    for turn in range(steps + 3):
        placed = driver.place(jax.tree.leaves((params, batch)))
        jax.block_until_ready(placed)
        begin = time.thread_time()
        made: Any = driver(*placed)
        called = time.thread_time()
        driver.wait(made)
        params = [jnp.asarray(each) for each in made[:stages]]
        again = driver.place(jax.tree.leaves((params, batch)))
        alone = time.thread_time()
        idle(*again)
        if turn >= 3:
            seconds.append(called - begin)
            own.append(time.thread_time() - alone)
    return len(driver.instructions), statistics.median(seconds), statistics.median(own)


def main() -> int:
    """Prints the figures; returns the exit code: 1 if the share is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", type=int, default=8)
    parser.add_argument("--microbatches", type=int, default=64)
    parser.add_argument("--fragment-ms", type=float, default=5.0)
    parser.add_argument("--steps", type=int, default=20, help="measured steps (default 20)")
    parser.add_argument("--limit", type=float, default=0.05, help="exit 1 if the driver's own share is above (0.05)")
    args = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={args.stages} {os.environ.get('XLA_FLAGS', '')}"
    calls, seconds, own = host_seconds(args.stages, args.microbatches, args.steps)
    ideal_s = 2 * (args.microbatches + args.stages - 1) * args.fragment_ms / 1e3
    print(json.dumps({"calls": calls, "host_us_a_call": round(seconds / calls * 1e6, 1),
                      "host_ms_a_step": round(seconds * 1e3, 1), "ideal_step_ms": round(ideal_s * 1e3, 1),
                      "share": round(seconds / ideal_s, 4), "own_share": round(own / ideal_s, 4)}))
    return int(own / ideal_s > args.limit)


if __name__ == "__main__":
    sys.exit(main())
