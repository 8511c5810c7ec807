"""Runs shard_map programs with JAX on eight CPU devices; writes module, inputs and outputs of each.

Usage: ``python jax_programs.py FOLDER``. A process of its own, because the number of devices is fixed when JAX starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

PLAIN = Mesh(np.array(jax.devices()).reshape(4, 2), ("dp", "tp"))
SHUFFLED = Mesh(np.array(jax.devices())[[3, 1, 4, 0, 5, 7, 2, 6]].reshape(4, 2), ("dp", "tp"))


def accumulate(w, xs):
    """Gradient accumulation with an average in the scan."""
    def body(acc, x):
        g = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
        return acc + lax.pmean(g, "dp"), lax.psum(jnp.sum(g), ("dp", "tp"))
    acc, metric = lax.scan(body, jnp.zeros_like(w), xs)
    return w - 0.1 * acc, metric


def collectives(w, xs):
    """Gather, scatter, exchange, shift, in different orders of devices."""
    a = lax.all_gather(w, "dp", axis=0, tiled=True)
    b = lax.psum_scatter(a * (1 + lax.axis_index("dp")), "dp", scatter_dimension=0, tiled=True)
    c = lax.all_to_all(xs[0], "tp", split_axis=1, concat_axis=0, tiled=True)
    d = lax.ppermute(w, "dp", [(i, (i + 1) % 4) for i in range(4)])
    return b + d, jnp.sum(c) + lax.pmax(jnp.sum(w), "tp") + jnp.zeros((3,))


def ring(w, xs):
    """A ring all-reduce by hand, its number of steps known at run time only."""
    def body(state):
        i, acc, moving = state
        moving = lax.ppermute(moving, "dp", [(k, (k + 1) % 4) for k in range(4)])
        return i + 1, acc + moving, moving
    steps = 3 + (xs[0, 0, 0] > 1e6).astype(jnp.int32)
    _, acc, _ = lax.while_loop(lambda s: s[0] < steps, body, (jnp.int32(0), w, w))
    return acc, jnp.zeros((3,))


def by_group(w, xs):
    """Each tensor-parallel pair takes its own branch and its own number of iterations."""
    index = lax.axis_index("dp")
    branch = lax.cond(index % 2 == 0, lambda v: lax.psum(v, "tp"), lambda v: -v, w)
    total = lax.fori_loop(0, index + 1, lambda i, v: v + lax.pmean(v, "tp"), branch)
    return total, jnp.full((3,), index.astype(jnp.float32)) * 0


def sparse(w, xs):
    """Gathers, scatters, sorting, one-hot, cumulative sums, integers, narrow floats."""
    rows = (jnp.abs(xs[0, :, 0]) * 3).astype(jnp.int32) % w.shape[0]
    looked_up = w[rows].astype(jnp.bfloat16)
    grads = jnp.zeros_like(w).at[rows].add(looked_up.astype(jnp.float32))
    ordered = jnp.sort(lax.psum(grads, "dp"), axis=0)
    probabilities = jax.nn.log_softmax(jnp.cumsum(ordered, axis=1))
    best = jnp.argmax(probabilities, axis=1)
    hot = jax.nn.one_hot(best, w.shape[1]) * lax.psum(probabilities, "tp")
    return hot + ordered, jnp.zeros((3,))


PROGRAMS: dict[str, tuple[Callable, Mesh]] = {
    "accumulate": (accumulate, PLAIN), "accumulate_shuffled": (accumulate, SHUFFLED), "ring": (ring, PLAIN),
    "collectives": (collectives, PLAIN), "collectives_shuffled": (collectives, SHUFFLED),
    "by_group": (by_group, PLAIN), "by_group_shuffled": (by_group, SHUFFLED), "sparse": (sparse, PLAIN)}
SPECS = {"in_specs": (P("dp", "tp"), P(None, "dp")), "out_specs": (P("dp", "tp"), P())}
ACCUMULATE = {"in_specs": (P(None, "tp"), P(None, "dp")), "out_specs": (P(None, "tp"), P())}


def main(folder: Path) -> None:
    """Runs every program once."""
    generator = np.random.default_rng(0)
    for name, (function, mesh) in PROGRAMS.items():
        specs = ACCUMULATE if function is accumulate else SPECS
        step = jax.jit(jax.shard_map(function, mesh=mesh, check_vma=False, **specs), keep_unused=True)
        w = generator.normal(size=(8, 4)).astype(np.float32)
        xs = generator.normal(size=(3, 8, 8)).astype(np.float32)
        (folder / f"{name}.mlir").write_text(step.lower(w, xs).as_text())
        outputs = step(w, xs)
        np.savez(folder / f"{name}.npz", w=w, xs=xs, **{f"out{k}": np.asarray(v) for k, v in enumerate(outputs)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
