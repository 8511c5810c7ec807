"""CPU time of a step of small stages, and of its first call, next to one jit's.

    python bench/pipelines/pipeline_small_stages.py                       # 64 rows in 4 micro-batches
    python bench/pipelines/pipeline_small_stages.py --rows 2048 --width 256
    python bench/pipelines/pipeline_small_stages.py --xla --rounds 1      # on one core: XLA's part of first calls

Sixteen layers in four stages of one CPU device each, as a list and as a stack. CPU time of the whole process, so that
what else the machine does counts little: computation, dispatch, and threads that wake each other. The two
alternate, ten steps each, and medians are printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path += [str(Path(__file__).resolve().parents[2])]
LAYERS, STAGES, TURN = 16, 4, 10


def step_of(stacked: bool, microbatches: int) -> Callable[..., Any]:
    """A step of residual layers."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    import hlorewrite

    def layer(x: jax.Array, w: Any) -> jax.Array:
        return x + jnp.tanh(x @ w[0]) @ w[1]

    def loss_fn(params: Any, x: jax.Array) -> jax.Array:
        if stacked:
            x, _ = lax.scan(lambda x, w: (layer(hlorewrite.stage_layers(x, STAGES), w), None), x, params)
        else:
            for number, w in enumerate(params):
                begins = number % (LAYERS // STAGES) == 0
                x = layer(hlorewrite.stage(x, number // (LAYERS // STAGES)) if begins else x, w)
        return jnp.mean(x ** 2)

    def step(params: Any, batch: jax.Array) -> Any:
        loss, grads = hlorewrite.mean_over_microbatches(
            lambda rows: jax.value_and_grad(loss_fn)(params, rows), batch, microbatches)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss

    return step


def cpu_seconds(step: Callable[..., Any], params: Any, batch: Any, count: int) -> tuple[float, Any]:
    """CPU seconds of the process for each of some steps, and the parameters after them."""
    import jax

    begin = time.process_time()
    for _ in range(count):
        params, _ = step(params, batch)
    jax.block_until_ready(params)
    return (time.process_time() - begin) / count, params


def first_call(step: Callable[..., Any], params: Any, batch: Any) -> tuple[float, Any, float]:
    """CPU seconds of a first call, the parameters after it, and the seconds in XLA where it compiles one at a time."""
    from jax._src import compiler

    original, spent = compiler.backend_compile_and_load, [0.0]

    def timed(*args: Any, **named: Any) -> Any:
        begin = time.process_time()
        try:
            return original(*args, **named)
        finally:
            spent[0] += time.process_time() - begin

    compiler.backend_compile_and_load = timed
    try:
        seconds, after = cpu_seconds(step, params, batch, 1)
    finally:
        compiler.backend_compile_and_load = original
    return seconds, after, spent[0]


def measure(stacked: bool, given: argparse.Namespace) -> None:
    """Prints CPU times of one form."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import hlorewrite

    numbers = np.random.RandomState(0)
    layers = [tuple(numbers.randn(given.width, given.width).astype("f4") / given.width ** 0.5 for _ in range(2))
              for _ in range(LAYERS)]
    params = jax.tree.map(lambda *each: np.stack(each), *layers) if stacked else layers
    batch = jnp.asarray(numbers.randn(given.rows, given.width), "f4")
    step = step_of(stacked, given.microbatches)
    steps = [jax.jit(step, donate_argnums=0), hlorewrite.pipeline(step, meshes=[(1,)] * STAGES, donate_argnums=0)]
    first, states, compiling = zip(*(first_call(each, jax.tree.map(jnp.asarray, params), batch) for each in steps),
                                   strict=True)
    states, taken = list(states), ([], [])
    for _ in range(given.rounds):
        for kind, each in enumerate(steps):
            seconds, states[kind] = cpu_seconds(each, states[kind], batch, TURN)
            taken[kind].append(seconds)
    one, split = map(statistics.median, taken)
    in_xla = f"; XLA {compiling[1]:.2f} s, {compiling[0]:.2f} s ({compiling[1] / compiling[0]:.2f})"
    print(f"{'stack' if stacked else 'list'}: step {split * 1e3:.1f} ms, one jit {one * 1e3:.1f} ms "
          f"({split / one:.2f}); "
          f"first call {first[1]:.2f} s, one jit {first[0]:.2f} s ({first[1] / first[0]:.2f})"
          f"{in_xla if given.xla else ''}", flush=True)


def main() -> None:
    """Measures both forms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--xla", action="store_true", help="on one core, also the CPU time of XLA's compilations")
    given = parser.parse_args()
    if given.xla:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import jax

    jax.config.update("jax_num_cpu_devices", STAGES)
    for stacked in (False, True):
        measure(stacked, given)


if __name__ == "__main__":
    main()
