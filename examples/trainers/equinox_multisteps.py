"""Equinox: ``eqx.filter_jit`` around a step; four micro-batches are added in the step, or by ``optax.MultiSteps``.

``python equinox_multisteps.py [STEPS] [multisteps]`` prints the loss of each update. It does not refer to hlorewrite.
"""

from __future__ import annotations

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
ACROSS_CALLS = sys.argv[2:] == ["multisteps"]
jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
rng = np.random.default_rng(0)
rows = jax.device_put(rng.standard_normal((4, 64, 16), np.float32), NamedSharding(mesh, P(None, "data")))
wanted = jax.device_put(rng.standard_normal((4, 64, 8), np.float32), NamedSharding(mesh, P(None, "data")))
model = eqx.nn.MLP(16, 8, width_size=64, depth=1, key=jax.random.key(0))
optimizer = optax.MultiSteps(optax.adamw(1e-2), 4) if ACROSS_CALLS else optax.adamw(1e-2)
state = optimizer.init(eqx.filter(model, eqx.is_array))


def loss_of(model: eqx.Module, x: jax.Array, y: jax.Array) -> jax.Array:
    """The mean squared error."""
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


@eqx.filter_jit
def train_step(model, state, rows, wanted):
    """One update from all micro-batches it is given."""
    arrays, static = eqx.partition(model, eqx.is_array)

    def micro_batch(total, batch):
        gradient = jax.value_and_grad(lambda p, x, y: loss_of(eqx.combine(p, static), x, y))(arrays, *batch)
        return jax.tree.map(jnp.add, total, gradient), None
    start = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, arrays))
    value, grads = jax.tree.map(lambda t: t / len(rows), jax.lax.scan(micro_batch, start, (rows, wanted))[0])
    updates, state = optimizer.update(grads, state, arrays)
    return eqx.apply_updates(model, updates), state, value


for _ in range(STEPS):
    if ACROSS_CALLS:
        losses = []
        for one in range(4):
            model, state, loss = train_step(model, state, rows[one:one + 1], wanted[one:one + 1])
            losses.append(float(loss))
        print(f"LOSS {np.mean(losses):.7g}", flush=True)
    else:
        model, state, loss = train_step(model, state, rows, wanted)
        print(f"LOSS {float(loss):.7g}", flush=True)
