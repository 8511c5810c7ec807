"""Flax NNX, auto-sharded: the batch is split over eight devices by ``jit``; XLA's partitioner inserts the collectives.

``python examples/flax_nnx.py`` prints what ``hlorewrite.optimize`` does to it. Needs flax.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite

MICRO_BATCHES = 4


class NormalizedMlp(nnx.Module):
    """Two layers with a norm between them."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.up = nnx.Linear(16, 64, rngs=rngs)
        self.norm = nnx.LayerNorm(64, rngs=rngs)
        self.down = nnx.Linear(64, 8, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """x is (batch, 16)."""
        return self.down(nnx.gelu(self.norm(self.up(x))))


def make_step() -> tuple:
    """The jitted step and example arguments, for eight devices."""
    graph, params = nnx.split(NormalizedMlp(nnx.Rngs(0)), nnx.Param)
    optimizer = optax.adamw(1e-3)
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    replicated, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "data"))

    def loss_fn(params: nnx.State, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.mean((nnx.merge(graph, params)(x) - y) ** 2)

    def step(params: nnx.State, state: optax.OptState, inputs: jax.Array, targets: jax.Array):
        def micro_batch(total: nnx.State, batch: tuple) -> tuple[nnx.State, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss_fn)(params, *batch)), None

        grads, _ = lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, params), (inputs, targets))
        grads = jax.tree.map(lambda g: g / MICRO_BATCHES, grads)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    x, y = jax.random.split(jax.random.key(1))
    arguments = (params, optimizer.init(params), jax.random.normal(x, (MICRO_BATCHES, 16, 16)),
                 jax.random.normal(y, (MICRO_BATCHES, 16, 8)))
    return jax.jit(step, in_shardings=(replicated, replicated, rows, rows),
                   out_shardings=(replicated, replicated)), arguments


if __name__ == "__main__":
    step, arguments = make_step()
    print(hlorewrite.optimize(step).lower(*arguments).report)
