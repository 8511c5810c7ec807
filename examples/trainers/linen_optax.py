"""Flax linen and optax: micro-batches are accumulated in a scan inside the step, data-parallel by shardings.

``python linen_optax.py [STEPS]`` prints the loss of each step. It does not refer to hlorewrite.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
rng = np.random.default_rng(0)
rows = jax.device_put(rng.standard_normal((4, 64, 16), np.float32), NamedSharding(mesh, P(None, "data")))
wanted = jax.device_put(rng.standard_normal((4, 64, 8), np.float32), NamedSharding(mesh, P(None, "data")))


class LinenModel(linen.Module):
    """Two layers."""

    @linen.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return linen.Dense(8, name="down")(linen.relu(linen.Dense(64, name="up")(x)))


model, optimizer = LinenModel(), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))
params = model.init(jax.random.key(0), rows[0])
state = optimizer.init(params)


@jax.jit
def train_step(params, state, rows, wanted):
    """One update from four micro-batches."""
    def micro_batch(total, batch):
        loss = lambda p, x, y: jnp.mean((model.apply(p, x) - y) ** 2)  # noqa: E731
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, *batch)), None
    start = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
    value, grads = jax.tree.map(lambda t: t / 4, jax.lax.scan(micro_batch, start, (rows, wanted))[0])
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


for _ in range(STEPS):
    params, state, loss = train_step(params, state, rows, wanted)
    print(f"LOSS {float(loss):.7g}", flush=True)
