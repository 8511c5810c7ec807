"""Steps that accumulate gradients across calls, for the bench and the tests of ``partial_state``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

Tree = Any
DEVICES = 8
UPDATES_EVERY = 4
ROWS = 64


def loss_of(params: Tree, x: jax.Array) -> jax.Array:
    """Mean of squares of one layer."""
    return jnp.mean(jnp.tanh(x @ params["w"] + params["b"]) ** 2)


@dataclass(frozen=True)
class AccumulatingStep:
    """An auto-sharded step of ``w`` and ``b`` that updates them in every fourth call.

    Attributes:
      name: how it accumulates.
      start: makes the state of the optimizer, the accumulated gradients among it.
      update: (parameters, state, gradients) to new parameters and state.
    """

    name: str
    start: Callable[[Tree], Tree]
    update: Callable[[Tree, Tree, Tree], tuple[Tree, Tree]]

    def jitted(self, mesh: Any, **options: Any) -> Any:
        """The step; its results are replicated."""
        def step(state: Tree, x: jax.Array) -> tuple[Tree, jax.Array]:
            params, kept = state
            loss, gradients = jax.value_and_grad(loss_of)(params, x)
            return self.update(params, kept, gradients), loss
        return jax.jit(step, out_shardings=NamedSharding(mesh, P()), **options)

    def arguments(self, mesh: Any, width: int, *, described: bool = False) -> tuple[Tree, Any]:
        """State, replicated, and a batch; shapes alone for devices that are described."""
        def make() -> tuple[Tree, jax.Array]:
            params = {"w": jnp.full((width, width), 0.1), "b": jnp.zeros(width)}
            return (params, self.start(params)), jax.random.normal(jax.random.key(0), (ROWS, width))
        whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
        if not described:
            return jax.jit(make, out_shardings=(whole, rows))()
        state, x = jax.eval_shape(make)
        return (jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=whole), state),
                jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=rows))

    def exported(self, width: int) -> bytes:
        """The step as a module for eight GPUs."""
        mesh = AbstractMesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
        arguments = self.arguments(mesh, width, described=True)
        return jax.export.export(self.jitted(mesh), platforms=["cuda"])(*arguments).mlir_module_serialized


def zeros_like(params: Tree) -> Tree:
    """A tree of zeros."""
    return jax.tree.map(jnp.zeros_like, params)


def in_a_branch(params: Tree, kept: Tree, gradients: Tree) -> tuple[Tree, Tree]:
    """Adds up gradients, then updates and starts over, in a branch."""
    total, calls = kept
    total, last = jax.tree.map(jnp.add, total, gradients), calls == UPDATES_EVERY - 1

    def update(params: Tree, total: Tree) -> tuple[Tree, Tree]:
        return jax.tree.map(lambda p, t: p - 0.1 * t / UPDATES_EVERY, params, total), zeros_like(total)
    params, total = jax.lax.cond(last, update, lambda params, total: (params, total), params, total)
    return params, (total, jnp.where(last, 0, calls + 1))


def as_keras_does(params: Tree, kept: Tree, gradients: Tree) -> tuple[Tree, Tree]:
    """Computes an update in each call; conditions choose what is kept (``keras.optimizers`` on JAX)."""
    velocity, total, calls = kept
    last = calls == UPDATES_EVERY - 1

    def chosen(new: Tree, old: Tree) -> Tree:
        return jax.lax.cond(last, lambda: new, lambda: old)
    mean = chosen(jax.tree.map(lambda t, g: (t + g) / UPDATES_EVERY, total, gradients), gradients)
    total = chosen(zeros_like(total), jax.tree.map(jnp.add, total, gradients))
    faster = jax.tree.map(lambda v, g: 0.9 * v + g * jax.lax.rsqrt(g * g + 1e-3), velocity, mean)
    moved = jax.tree.map(lambda p, v: p - 0.1 * v, params, faster)
    return chosen(moved, params), (chosen(faster, velocity), total, jnp.where(last, 0, calls + 1))


def multi_steps(name: str, optimizer: optax.GradientTransformation) -> AccumulatingStep:
    """A step with ``optax.MultiSteps``."""
    steps = optax.MultiSteps(optimizer, UPDATES_EVERY)

    def update(params: Tree, kept: Tree, gradients: Tree) -> tuple[Tree, Tree]:
        updates, kept = steps.update(gradients, kept, params)
        return optax.apply_updates(params, updates), kept
    return AccumulatingStep(f"MultiSteps, {name}", steps.init, update)


IN_A_BRANCH = AccumulatingStep("a branch", lambda params: (zeros_like(params), jnp.int32(0)), in_a_branch)
STEPS = (IN_A_BRANCH,
         AccumulatingStep("as Keras does", lambda params: (zeros_like(params), zeros_like(params), jnp.int32(0)),
                          as_keras_does),
         multi_steps("sgd", optax.sgd(0.1, 0.9)), multi_steps("adamw", optax.adamw(1e-2)),
         multi_steps("adamw, clipped", optax.chain(optax.clip_by_global_norm(0.01), optax.adamw(1e-2))))
