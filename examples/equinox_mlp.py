"""Equinox: an MLP split in arrays and the rest, data-parallel by shard_map, gradients averaged in the loop.

``python examples/equinox_mlp.py`` prints what ``hlorewrite.optimize`` does to it. Needs equinox.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import hlorewrite

MICRO_BATCHES = 4


def make_step() -> tuple:
    """The jitted step and example arguments, for eight devices."""
    model = eqx.nn.MLP(16, 8, width_size=64, depth=2, key=jax.random.key(0))
    params, rest = eqx.partition(model, eqx.is_inexact_array)
    optimizer = optax.adamw(1e-3)
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))

    def loss_fn(params: eqx.nn.MLP, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.mean((jax.vmap(eqx.combine(params, rest))(x) - y) ** 2)

    def local_step(params: eqx.nn.MLP, state: optax.OptState, inputs: jax.Array, targets: jax.Array):
        def micro_batch(total: eqx.nn.MLP, batch: tuple) -> tuple[eqx.nn.MLP, None]:
            grads = lax.pmean(jax.grad(loss_fn)(params, *batch), "data")
            return jax.tree.map(jnp.add, total, grads), None

        grads, _ = lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, params), (inputs, targets))
        grads = jax.tree.map(lambda g: g / MICRO_BATCHES, grads)
        updates, state = optimizer.update(grads, state, params)
        return eqx.apply_updates(params, updates), state

    sharded = jax.shard_map(local_step, mesh=mesh, in_specs=(P(), P(), P(None, "data"), P(None, "data")),
                            out_specs=(P(), P()), check_vma=False)
    x, y = jax.random.split(jax.random.key(1))
    arguments = (params, optimizer.init(params), jax.random.normal(x, (MICRO_BATCHES, 16, 16)),
                 jax.random.normal(y, (MICRO_BATCHES, 16, 8)))
    return jax.jit(sharded), arguments


if __name__ == "__main__":
    step, arguments = make_step()
    print(hlorewrite.optimize(step).lower(*arguments).report)
