"""A micro-batched GPT train step, data-parallel over a mesh, in the everyday idiom: average the gradients in the loop.

``python examples/gpt.py --out step.export`` writes the step as a serialized ``jax.export`` for eight devices, no device
needed beyond one CPU core:

    python examples/gpt.py --size small --out step.export
    hlorewrite opt step.export --pass=comm-shift --emit=export -o shifted.export
    hlorewrite compile shifted.export --target h200:1x8
"""

from __future__ import annotations

import argparse
import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


@dataclass(frozen=True)
class GptConfig:
    """Sizes of the model and of one step; ``batch`` counts sequences of one micro-batch over all devices."""

    vocab: int = 128
    layers: int = 2
    heads: int = 2
    width: int = 32
    seq: int = 16
    batch: int = 8
    micro_batches: int = 8


SIZES = {
    "tiny": GptConfig(),
    "small": GptConfig(vocab=512, layers=4, heads=4, width=128, seq=64),
    "gpt2": GptConfig(vocab=50304, layers=12, heads=12, width=768, seq=1024, batch=32),
}


def init_params(cfg: GptConfig, key: jax.Array) -> dict:
    """Parameters, the layers stacked along a leading axis so that the model scans over them; embeddings are tied."""
    keys = iter(jax.random.split(key, 6))
    d, n = cfg.width, cfg.layers

    def normal(*shape: int) -> jax.Array:
        return 0.02 * jax.random.normal(next(keys), shape, jnp.float32)

    return {"embed": normal(cfg.vocab, d), "position": normal(cfg.seq, d), "final_norm": jnp.ones(d),
            "layers": {"qkv": normal(n, d, 3 * d), "out": normal(n, d, d), "up": normal(n, d, 4 * d),
                       "down": normal(n, 4 * d, d), "norm1": jnp.ones((n, d)), "norm2": jnp.ones((n, d))}}


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Root-mean-square normalisation over the last axis."""
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def attention(x: jax.Array, layer: dict, cfg: GptConfig) -> jax.Array:
    """Causal self-attention; x is (batch, seq, width)."""
    b, s, d = x.shape
    q, k, v = jnp.split((x @ layer["qkv"]).reshape(b, s, cfg.heads, -1), 3, axis=-1)
    scores = jnp.einsum("bqhc,bkhc->bhqk", q, k) / jnp.sqrt(d / cfg.heads)
    scores = jnp.where(jnp.tril(jnp.ones((s, s), bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhc->bqhc", jax.nn.softmax(scores), v).reshape(b, s, d) @ layer["out"]


def loss_fn(params: dict, tokens: jax.Array, cfg: GptConfig) -> jax.Array:
    """Mean cross-entropy of the next token; tokens is (batch, seq + 1)."""
    def block(x: jax.Array, layer: dict) -> tuple[jax.Array, None]:
        x = x + attention(norm(x, layer["norm1"]), layer, cfg)
        return x + jax.nn.gelu(norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"], None

    x = params["embed"][tokens[:, :-1]] + params["position"]
    x, _ = lax.scan(block, x, params["layers"])
    log_probs = jax.nn.log_softmax(norm(x, params["final_norm"]) @ params["embed"].T)
    return -jnp.mean(jnp.take_along_axis(log_probs, tokens[:, 1:, None], axis=-1))


def init_state(cfg: GptConfig, seed: int = 0) -> dict:
    """Parameters, both AdamW moments and the step count."""
    params = init_params(cfg, jax.random.key(seed))
    mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))  # donated: no buffer may be in both
    return {"params": params, "mean": mean, "square": square, "count": jnp.zeros((), jnp.int32)}


def adamw(state: dict, grads: dict, rate: float = 1e-3, decay: float = 0.1) -> dict:
    """One AdamW update (Loshchilov and Hutter 2019)."""
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], grads)
    square = jax.tree.map(lambda s, g: 0.95 * s + 0.05 * g * g, state["square"], grads)
    c1, c2 = 1 - 0.9 ** count.astype(jnp.float32), 1 - 0.95 ** count.astype(jnp.float32)
    params = jax.tree.map(lambda p, m, s: p - rate * (m / c1 / (jnp.sqrt(s / c2) + 1e-8) + decay * p),
                          state["params"], mean, square)
    return {"params": params, "mean": mean, "square": square, "count": count}


def local_step(cfg: GptConfig, state: dict, tokens: jax.Array) -> tuple[dict, jax.Array]:
    """The step as each device runs it; tokens is (micro_batches, batch of this device, seq + 1)."""
    def micro_batch(carry: tuple, batch: jax.Array) -> tuple[tuple, None]:
        total, total_loss = carry
        loss, grads = jax.value_and_grad(loss_fn)(state["params"], batch, cfg)
        grads = lax.pmean(grads, "data")
        loss = lax.pmean(loss, "data")
        return (jax.tree.map(jnp.add, total, grads), total_loss + loss), None

    zeros = jax.tree.map(jnp.zeros_like, state["params"])
    (grads, loss), _ = lax.scan(micro_batch, (zeros, jnp.zeros(())), tokens)
    grads = jax.tree.map(lambda g: g / cfg.micro_batches, grads)
    return adamw(state, grads), loss / cfg.micro_batches


def make_step(cfg: GptConfig, mesh: jax.sharding.Mesh | AbstractMesh):
    """The jitted step: (state, tokens) -> (state, loss), the state replicated and donated."""
    sharded = jax.shard_map(functools.partial(local_step, cfg), mesh=mesh, in_specs=(P(), P(None, "data")),
                            out_specs=(P(), P()), check_vma=False)
    return jax.jit(sharded, donate_argnums=0)


def arguments(cfg: GptConfig, mesh: jax.sharding.Mesh | AbstractMesh) -> tuple:
    """Shapes, dtypes and shardings of (state, tokens)."""
    def spec(x: jax.ShapeDtypeStruct, partition: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, partition))

    state = jax.tree.map(lambda x: spec(x, P()), jax.eval_shape(functools.partial(init_state, cfg)))
    tokens = jax.ShapeDtypeStruct((cfg.micro_batches, cfg.batch, cfg.seq + 1), jnp.int32)
    return state, spec(tokens, P(None, "data"))


def export_step(cfg: GptConfig, devices: int = 8, platform: str = "cpu") -> bytes:
    """The step for a mesh that need not exist here, as a serialized ``jax.export``."""
    mesh = AbstractMesh((devices,), ("data",), axis_types=(AxisType.Auto,))
    exported = jax.export.export(make_step(cfg, mesh), platforms=(platform,))(*arguments(cfg, mesh))
    return bytes(exported.serialize())


def main() -> None:
    """Writes the step to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")  # nothing runs here; JAX would complain of a GPU plug-in without a GPU
    data = export_step(SIZES[args.size], args.devices)
    with open(args.out, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
