"""One process of several that joins ``jax.distributed`` and trains; run under ``hlorewrite exec`` or without.

``PORT PROCESS PROCESSES MICROBATCHES``; prints the loss of each of three steps.
"""

from __future__ import annotations

import sys

import jax

port, process, processes, micro_batches = (int(word) for word in sys.argv[1:5])
if processes > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", processes, process, initialization_timeout=60)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))


def gradients(weights: jax.Array, batches: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The mean loss and the updated weights; the gradient is averaged in each micro-batch."""
    def body(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2))(weights)
        return total + jax.lax.pmean(gradient, "data"), jax.lax.pmean(loss, "data")
    total, losses = jax.lax.scan(body, jnp.zeros_like(weights), batches)
    return weights - 0.1 * total, jnp.mean(losses)


@jax.jit
def train_step(weights: jax.Array, batches: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One step of all micro-batches."""
    return jax.shard_map(gradients, mesh=mesh, in_specs=(P(), P(None, "data")), out_specs=(P(), P()),
                         check_vma=False)(weights, batches)


whole = np.random.default_rng(0).standard_normal((micro_batches, 2 * jax.device_count(), 8)).astype(np.float32)
batches = jax.make_array_from_callback(whole.shape, NamedSharding(mesh, P(None, "data")), lambda index: whole[index])
weights = jax.make_array_from_callback((8, 8), NamedSharding(mesh, P()), lambda index: np.ones((8, 8), np.float32))
for _ in range(3):
    weights, loss = train_step(weights, batches)
    print(f"LOSS {float(loss):.5f}", flush=True)
