"""Train steps of flax NNX and Equinox on four micro-batches over eight devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

eqx = pytest.importorskip("equinox")
nnx = pytest.importorskip("flax.nnx")
optax = pytest.importorskip("optax")

ROWS = np.random.default_rng(0).normal(size=(4, 16, 6)).astype(np.float32)
WANTED = np.random.default_rng(1).normal(size=(4, 16, 3)).astype(np.float32)

def batch() -> tuple[jax.Array, jax.Array]:
    """Inputs and targets, sharded over the devices."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    over = NamedSharding(mesh, P(None, "data"))
    return jax.device_put(ROWS, over), jax.device_put(WANTED, over)


def accumulated(loss: Callable[..., jax.Array], params: Any, xs: jax.Array, ys: jax.Array) -> Any:
    """Loss and gradients of four micro-batches, added in a scan."""
    def micro_batch(total: Any, pair: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, *pair)), None
    return lax.scan(micro_batch, (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)), (xs, ys))[0]


def network() -> tuple[Any, Any]:
    """An NNX layer and its optimizer."""
    model = nnx.Linear(6, 3, rngs=nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)


def nnx_step(model: Any, optimizer: Any, xs: jax.Array, ys: jax.Array) -> jax.Array:
    """Updates model and optimizer in place."""
    graph, params = nnx.split(model, nnx.Param)
    value, grads = accumulated(lambda p, x, y: jnp.mean((nnx.merge(graph, p)(x) - y) ** 2), params, xs, ys)
    optimizer.update(model, grads)
    return value


def equinox_step(model: Any, state: Any, xs: jax.Array, ys: jax.Array) -> tuple[Any, Any, jax.Array]:
    """Returns the new model and state."""
    arrays, static = eqx.partition(model, eqx.is_array)
    value, grads = accumulated(lambda p, x, y: jnp.mean((jax.vmap(eqx.combine(p, static))(x) - y) ** 2), arrays, xs, ys)
    updates, state = optax.adam(0.1).update(grads, state, arrays)
    return eqx.apply_updates(model, updates), state, value


def equinox_model() -> tuple[Any, Any]:
    """An Equinox model and the state of its optimizer."""
    model = eqx.nn.MLP(6, 3, width_size=8, depth=1, key=jax.random.key(0))
    return model, optax.adam(0.1).init(eqx.filter(model, eqx.is_array))
