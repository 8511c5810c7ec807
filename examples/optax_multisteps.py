"""Plain JAX with ``optax.MultiSteps`` around AdamW: micro-batches scanned in one step, data-parallel by shard_map.

``python examples/optax_multisteps.py`` prints what ``hlorewrite.optimize`` does to it.
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
OPTIMIZER = optax.MultiSteps(optax.adamw(1e-3), every_k_schedule=MICRO_BATCHES)


def init(seed: int = 0) -> tuple[dict, optax.MultiStepsState]:
    """A two-layer network and its optimizer state."""
    up, down = jax.random.split(jax.random.key(seed))
    params = {"up": 0.1 * jax.random.normal(up, (16, 64)), "down": 0.1 * jax.random.normal(down, (64, 8))}
    return params, OPTIMIZER.init(params)


def local_step(params: dict, state: optax.MultiStepsState, inputs: jax.Array, targets: jax.Array):
    """One update from several micro-batches, as each device runs it."""
    def loss_fn(params: dict, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"] - y) ** 2)

    def micro_batch(carry: tuple, batch: tuple) -> tuple[tuple, jax.Array]:
        params, state = carry
        loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
        grads = lax.pmean(grads, "data")
        updates, state = OPTIMIZER.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), lax.pmean(loss, "data")

    (params, state), losses = lax.scan(micro_batch, (params, state), (inputs, targets))
    return params, state, losses.mean()


def make_step() -> tuple:
    """The jitted step and example arguments, for eight devices."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    sharded = jax.shard_map(local_step, mesh=mesh, in_specs=(P(), P(), P(None, "data"), P(None, "data")),
                            out_specs=(P(), P(), P()), check_vma=False)
    x, y = jax.random.split(jax.random.key(1))
    batch = (jax.random.normal(x, (MICRO_BATCHES, 16, 16)), jax.random.normal(y, (MICRO_BATCHES, 16, 8)))
    return jax.jit(sharded), (*init(), *batch)


if __name__ == "__main__":
    step, arguments = make_step()
    print(hlorewrite.optimize(step).lower(*arguments).report)
