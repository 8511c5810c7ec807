"""Plain JAX with optax AdamW: gradients accumulated as a running mean over micro-batches, data-parallel by shard_map.

``python examples/optax_accumulate.py`` prints what ``hlorewrite.optimize`` does to it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import hlorewrite

MICRO_BATCHES = 4
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))


def init(seed: int = 0) -> tuple[dict, optax.OptState]:
    """A two-layer network and its optimizer state."""
    up, down = jax.random.split(jax.random.key(seed))
    params = {"up": 0.1 * jax.random.normal(up, (16, 64)), "down": 0.1 * jax.random.normal(down, (64, 8))}
    return params, OPTIMIZER.init(params)


def local_step(params: dict, state: optax.OptState, inputs: jax.Array, targets: jax.Array):
    """One update from several micro-batches, as each device runs it; the clip sees the whole gradient."""
    def loss_fn(params: dict, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"] - y) ** 2)

    def micro_batch(mean: dict, batch: tuple) -> tuple[dict, None]:
        number, x, y = batch
        grads = lax.pmean(jax.grad(loss_fn)(params, x, y), "data")
        return jax.tree.map(lambda m, g: m + (g - m) / (number + 1), mean, grads), None

    zeros = jax.tree.map(jnp.zeros_like, params)
    grads, _ = lax.scan(micro_batch, zeros, (jnp.arange(MICRO_BATCHES, dtype=jnp.float32), inputs, targets))
    updates, state = OPTIMIZER.update(grads, state, params)
    return optax.apply_updates(params, updates), state


def make_step() -> tuple:
    """The jitted step and example arguments, for eight devices."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    sharded = jax.shard_map(local_step, mesh=mesh, in_specs=(P(), P(), P(None, "data"), P(None, "data")),
                            out_specs=(P(), P()), check_vma=False)
    x, y = jax.random.split(jax.random.key(1))
    batch = (jax.random.normal(x, (MICRO_BATCHES, 16, 16)), jax.random.normal(y, (MICRO_BATCHES, 16, 8)))
    return jax.jit(sharded), (*init(), *batch)


if __name__ == "__main__":
    step, arguments = make_step()
    print(hlorewrite.optimize(step).lower(*arguments).report)
