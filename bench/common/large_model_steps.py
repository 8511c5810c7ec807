"""Llama-like FSDP and HSDP steps at the sizes of 8B and 70B, auto-sharded, with constrained activations.

Nothing of that size is allocated: steps are lowered from shapes. ``python bench/common/large_model_steps.py 8B OUT``
writes a serialized ``jax.export`` for GPUs.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


@dataclass(frozen=True)
class LlamaStep:
    """Sizes of a model, and the mesh it is trained on.

    Attributes:
      layers: how many; the model scans over them.
      width: of the residual stream.
      hidden: of the gated MLP.
      heads: of queries.
      kv_heads: of keys and values.
      vocab: tokens.
      length: of a sequence; each device has one sequence of a micro-batch.
      micro_batches: in a step.
      replicas: of the sharded parameters; 1 is FSDP, more is HSDP.
      shards: of each parameter.
      constrained: activations carry a sharding constraint after each block.
    """

    layers: int
    width: int
    hidden: int
    heads: int
    kv_heads: int = 8
    vocab: int = 128256
    length: int = 4096
    micro_batches: int = 8
    replicas: int = 1
    shards: int = 8
    constrained: bool = True

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the parameters; matrices of layers are stacked."""
        n, d, kv = self.layers, self.width, self.kv_heads * (self.width // self.heads)
        return {"embed": (self.vocab, d), "head": (d, self.vocab), "norm": (d,), "norm1": (n, d), "norm2": (n, d),
                "q": (n, d, d), "k": (n, d, kv), "v": (n, d, kv), "o": (n, d, d), "gate": (n, d, self.hidden),
                "up": (n, d, self.hidden), "down": (n, self.hidden, d)}

    def mesh(self) -> AbstractMesh:
        """Replicas and shards, as axes that XLA's partitioner handles."""
        return AbstractMesh((self.replicas, self.shards), ("replica", "fsdp"), axis_types=(AxisType.Auto,) * 2)


STEPS = {
    "8B": (LlamaStep(layers=32, width=4096, hidden=14336, heads=32), "h200:1x8"),
    "70B": (LlamaStep(layers=80, width=8192, hidden=28672, heads=64, replicas=4, shards=32), "h200:16x8"),
}
OUTSIDE = ("embed", "head", "norm")


def _spec(name: str, shape: tuple[int, ...]) -> P:
    """The rows of each matrix are sharded; scales of norms are replicated."""
    return P() if name.startswith("norm") else P(*(None,) * (len(shape) - 2), "fsdp", None)


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + 1e-5) * scale).astype(x.dtype)


def _attention(x: jax.Array, layer: dict, model: LlamaStep) -> jax.Array:
    rows, length, width = x.shape
    size = model.width // model.heads
    q, k, v = ((x @ layer[name]).reshape(rows, length, -1, size) for name in "qkv")
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="xla")
    return mixed.reshape(rows, length, width) @ layer["o"]


def _loss(params: dict, tokens: jax.Array, model: LlamaStep, rows: NamedSharding) -> jax.Array:
    def pinned(x: jax.Array) -> jax.Array:
        return lax.with_sharding_constraint(x, rows) if model.constrained else x

    @jax.checkpoint
    def block(x: jax.Array, layer: dict) -> tuple[jax.Array, None]:
        layer = jax.tree.map(lambda w: w.astype(jnp.bfloat16), layer)
        x = pinned(x + _attention(_norm(x, layer["norm1"]), layer, model))
        y = _norm(x, layer["norm2"])
        return pinned(x + (jax.nn.silu(y @ layer["gate"]) * (y @ layer["up"])) @ layer["down"]), None

    x = pinned(params["embed"].astype(jnp.bfloat16)[tokens[:, :-1]])
    x, _ = lax.scan(block, x, {name: w for name, w in params.items() if name not in OUTSIDE})
    logits = (pinned(_norm(x, params["norm"])) @ params["head"].astype(jnp.bfloat16)).astype(jnp.float32)
    wanted = jax.nn.one_hot(tokens[:, 1:], model.vocab, dtype=jnp.float32)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * wanted, -1))


def _train_step(model: LlamaStep, rows: NamedSharding):
    """Sums of gradients over micro-batches, then AdamW."""
    def step(state: dict, tokens: jax.Array) -> tuple[dict, jax.Array]:
        def micro_batch(carry: tuple, each: jax.Array) -> tuple[tuple, None]:
            value, grads = jax.value_and_grad(_loss)(state["params"], each, model, rows)
            return (jax.tree.map(jnp.add, carry[0], grads), carry[1] + value), None

        zeros = jax.tree.map(jnp.zeros_like, state["params"])
        (grads, value), _ = lax.scan(micro_batch, (zeros, jnp.zeros(())), tokens)
        grads = jax.tree.map(lambda g: g / model.micro_batches, grads)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], grads)
        square = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, state["square"], grads)
        params = jax.tree.map(lambda p, m, v: p - 3e-4 * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * p),
                              state["params"], mean, square)
        return {"params": params, "mean": mean, "square": square}, value / model.micro_batches
    return step


def exported(model: LlamaStep) -> bytes:
    """A training step as a serialized ``jax.export`` for GPUs.

    Args:
      model: sizes and mesh.
    """
    mesh = model.mesh()

    def argument(shape: tuple[int, ...], dtype: type, spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

    one = {name: argument(shape, jnp.float32, _spec(name, shape)) for name, shape in model.shapes().items()}
    state = {"params": one, "mean": one, "square": one}
    tokens = argument((model.micro_batches, model.replicas * model.shards, model.length + 1), jnp.int32,
                      P(None, ("replica", "fsdp"), None))
    placed = (jax.tree.map(lambda x: x.sharding, state), NamedSharding(mesh, P()))
    step = _train_step(model, NamedSharding(mesh, P(("replica", "fsdp"), None, None)))
    jitted = jax.jit(step, donate_argnums=0, out_shardings=placed)
    return bytes(jax.export.export(jitted, platforms=("cuda",))(state, tokens).serialize())


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(exported(STEPS[sys.argv[1]][0]))
