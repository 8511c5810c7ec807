"""Data-parallel steps whose optimizer state can be sharded, for the bench and the tests of ``shard_update``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

Tree = Any


@dataclass(frozen=True)
class DataParallelStep:
    """A step of two layers and a tensor that no mesh divides.

    Attributes:
      name: what the optimizer does.
      start: makes the state of float32 parameters.
      update: (parameters, state, gradients) to new parameters and state.
      dtype: the type of the parameters; state keeps a float32 copy where that is another one.
    """

    name: str
    start: Callable[[Tree], Tree]
    update: Callable[[Tree, Tree, Tree], tuple[Tree, Tree]]
    dtype: str = "float32"

    def jitted(self, mesh: Any) -> Any:
        """The step over the axis ``data`` of a mesh; it donates parameters and state."""
        def step(params: Tree, state: Tree, x: jax.Array) -> tuple[Tree, Tree, jax.Array]:
            value, grads = jax.value_and_grad(loss)(params, x)
            grads = jax.tree.map(lambda g: jax.lax.pmean(g.astype(jnp.float32), "data"), grads)
            return (*self.update(params, state, grads), jax.lax.pmean(value, "data"))
        mapped = jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P("data")), out_specs=P(), check_vma=False)
        return jax.jit(mapped, donate_argnums=(0, 1))

    def arguments(self, mesh: Any, width: int, *, described: bool = False) -> tuple[Tree, Tree, Any]:
        """Parameters, state and a batch: replicated except the batch; only shapes for devices that are described."""
        def make() -> tuple[Tree, Tree, jax.Array]:
            keys = jax.random.split(jax.random.key(0), 3)
            full = {"w": 0.1 * jax.random.normal(keys[0], (width, width)), "b": jnp.zeros(width),
                    "v": 0.1 * jax.random.normal(keys[1], (width, 3)), "odd": jnp.ones(7)}
            params = jax.tree.map(lambda p: p.astype(self.dtype), full)
            return params, self.start(full), jax.random.normal(keys[2], (32, width))
        whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
        if not described:
            return jax.jit(make, out_shardings=(whole, whole, rows))()
        params, state, x = jax.eval_shape(make)
        shaped = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=whole), (params, state))
        return (*shaped, jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=rows))


def loss(params: Tree, x: jax.Array) -> jax.Array:
    """Mean of squares of two layers."""
    hidden = jnp.tanh(x.astype(params["w"].dtype) @ params["w"] + params["b"]) * params["odd"].sum()
    return jnp.mean((hidden @ params["v"]).astype(jnp.float32) ** 2)


def momentum(params: Tree, state: Tree, grads: Tree) -> tuple[Tree, Tree]:
    """SGD with momentum, decay and gradients of a norm of at most 0.1."""
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g, p: jnp.where(norm > 0.1, 0.1 * g / norm, g) + 0.01 * p, grads, params)
    state = jax.tree.map(lambda m, g: 0.9 * m + g, state, grads)
    return jax.tree.map(lambda p, m: p - 0.05 * m, params, state), state


def adamw(params: Tree, state: Tree, grads: Tree) -> tuple[Tree, Tree]:
    """AdamW on a float32 copy of the parameters, gradients of a norm of at most 0.1."""
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 0.1 / norm), grads)
    count = state["count"] + 1
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], grads)
    nu = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["nu"], grads)
    master = jax.tree.map(lambda p, m, v: p - 1e-2 * (m / (1 - 0.9 ** count) / (jnp.sqrt(v / (1 - 0.999 ** count))
                                                                               + 1e-8) + 0.01 * p),
                          state["master"], mu, nu)
    new = jax.tree.map(lambda p, m: m.astype(p.dtype), params, master)
    return new, {"mu": mu, "nu": nu, "master": master, "count": count}


def adamw_state(full: Tree) -> Tree:
    """The state of ``adamw``."""
    zeros = jax.tree.map(jnp.zeros_like, full)
    return {"mu": zeros, "nu": zeros, "master": full, "count": jnp.zeros((), jnp.float32)}


STEPS = (DataParallelStep("momentum, clipped", lambda full: jax.tree.map(jnp.zeros_like, full), momentum),
         DataParallelStep("AdamW, bf16 and float32 copy, clipped", adamw_state, adamw, "bfloat16"))
