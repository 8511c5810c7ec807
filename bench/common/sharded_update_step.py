"""Data-parallel steps whose optimizer state can be sharded, for the bench and the tests of ``shard_update``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

Tree = Any
DEVICES = 8


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
        """Parameters and state, replicated, and a batch; shapes alone for devices that are described."""
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


    def exported(self, width: int) -> bytes:
        """The replicated step as a module for eight GPUs."""
        mesh = _described()
        arguments = self.arguments(mesh, width, described=True)
        return jax.export.export(self.jitted(mesh), platforms=["cuda"])(*arguments).mlir_module_serialized

    def saved(self, width: int) -> int:
        """Bytes of state that a device need not hold: seven eighths of all tensors with a dimension that divides."""
        _, state, _ = self.arguments(_described(), width, described=True)
        even = [leaf for leaf in jax.tree.leaves(state) if any(size % DEVICES == 0 for size in leaf.shape)]
        return sum(leaf.size * leaf.dtype.itemsize * (DEVICES - 1) // DEVICES for leaf in even)


def _described() -> AbstractMesh:
    return AbstractMesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))


def loss(params: Tree, x: jax.Array) -> jax.Array:
    """Mean of squares of two layers, computed in float32."""
    full = jax.tree.map(lambda p: p.astype(jnp.float32), params)
    hidden = jnp.tanh(x @ full["w"] + full["b"]) * full["odd"].sum()
    return jnp.mean((hidden @ full["v"]) ** 2)


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
    """The state of ``adamw`` after some calls: where ``nu`` is 0, rounding decides the sign of an update."""
    mu, nu = jax.tree.map(jnp.zeros_like, full), jax.tree.map(lambda p: jnp.full_like(p, 1e-4), full)
    return {"mu": mu, "nu": nu, "master": full, "count": jnp.full((), 100, jnp.float32)}


STEPS = (DataParallelStep("momentum, clipped", lambda full: jax.tree.map(jnp.zeros_like, full), momentum),
         DataParallelStep("AdamW, float32 copy, clipped", adamw_state, adamw),
         DataParallelStep("AdamW, bf16 and float32 copy, clipped", adamw_state, adamw, "bfloat16"))
