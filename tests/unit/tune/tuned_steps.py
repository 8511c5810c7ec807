"""A small step with gradients averaged in a loop, as a function of a mesh, and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.target import parse_target

TARGET = "h200:1x8"
WIDTH, LAYERS, MICRO_BATCHES = 512, 3, 8


def gpu_mesh() -> Mesh:
    """Eight described GPUs."""
    return Mesh(np.array(private.described_gpu_devices("h200", parse_target(TARGET).description, 1, 8)), ("data",))


def step_on(mesh: Mesh | AbstractMesh, rate: float = 0.5) -> Callable[..., Any]:
    """The step, which is not jitted."""
    def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in weights:
            x = jnp.tanh(x @ w)
        return jnp.mean(x)

    def step(weights: list[jax.Array], batches: jax.Array) -> list[jax.Array]:
        def turn(total: list[jax.Array], batch: jax.Array) -> tuple[list[jax.Array], None]:
            gradients = lax.pmean(jax.grad(loss)(weights, batch), "data")
            return jax.tree.map(jnp.add, total, gradients), None
        total = lax.scan(turn, jax.tree.map(jnp.zeros_like, weights), batches)[0]
        return jax.tree.map(lambda w, t: w - rate * t, weights, total)

    return jax.shard_map(step, mesh=mesh, in_specs=(P(), P(None, "data")), out_specs=P(), check_vma=False)


def arguments(mesh: Mesh | AbstractMesh) -> tuple[list[jax.ShapeDtypeStruct], jax.ShapeDtypeStruct]:
    """Weights and batches."""
    def shaped(*shape: int, spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))
    weights = [shaped(WIDTH, WIDTH, spec=P()) for _ in range(LAYERS)]
    return weights, shaped(MICRO_BATCHES, 4096, WIDTH, spec=P(None, "data"))


def exported() -> bytes:
    """The step for eight GPUs that are not described, as a serialized ``jax.export``."""
    mesh = AbstractMesh((8,), ("data",))
    return bytes(jax.export.export(jax.jit(step_on(mesh)), platforms=("cuda",))(*arguments(mesh)).serialize())
