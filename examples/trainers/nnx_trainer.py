"""Flax NNX: ``nnx.jit`` around a step that accumulates four micro-batches, and updates model and optimizer in place.

``python nnx_trainer.py [STEPS]`` prints the loss of each step. It does not refer to hlorewrite.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
rng = np.random.default_rng(0)
rows = jax.device_put(rng.standard_normal((4, 64, 16), np.float32), NamedSharding(mesh, P(None, "data")))
wanted = jax.device_put(rng.standard_normal((4, 64, 8), np.float32), NamedSharding(mesh, P(None, "data")))


class NnxModel(nnx.Module):
    """Two layers."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.up, self.down = nnx.Linear(16, 64, rngs=rngs), nnx.Linear(64, 8, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.down(nnx.relu(self.up(x)))


model = NnxModel(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adamw(1e-2), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, rows, wanted):
    """One update from four micro-batches."""
    graph, params = nnx.split(model)

    def micro_batch(total, batch):
        loss = lambda p, x, y: jnp.mean((nnx.merge(graph, p)(x) - y) ** 2)  # noqa: E731
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, *batch)), None
    start = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
    value, grads = jax.tree.map(lambda t: t / 4, jax.lax.scan(micro_batch, start, (rows, wanted))[0])
    optimizer.update(model, grads)
    return value


for _ in range(STEPS):
    print(f"LOSS {float(train_step(model, optimizer, rows, wanted)):.7g}", flush=True)
