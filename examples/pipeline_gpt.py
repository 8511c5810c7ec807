"""A GPT over a pipeline of meshes: four stages, tied embeddings, AdamW with the global norm clipped.

The step is an ordinary JAX function: it runs unsplit on any device, which is what the pipelined one is compared with.

    python examples/pipeline_gpt.py                                      # runs it on eight CPU devices
    python examples/pipeline_gpt.py --meshes '(4x1),(2x1),(1x1),(1x1)' --schedule eager-1f1b
    python examples/pipeline_gpt.py --program program.mlir               # only writes the program
"""

from __future__ import annotations

import argparse
import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

import hlorewrite


@dataclass(frozen=True)
class PipelinedGptConfig:
    """Sizes of the model and of one step; ``batch`` counts sequences of one micro-batch."""

    vocab: int = 64
    stages: int = 4
    layers: int = 1  # of each stage
    heads: int = 2
    width: int = 16
    seq: int = 8
    batch: int = 8
    micro_batches: int = 8
    remat: bool = False


def init_params(cfg: PipelinedGptConfig, key: jax.Array) -> dict:
    """Parameters: one entry for each stage, its layers stacked; embeddings are tied."""
    keys = iter(jax.random.split(key, 2 + 4 * cfg.stages))
    d, n = cfg.width, cfg.layers

    def normal(*shape: int) -> jax.Array:
        return 0.02 * jax.random.normal(next(keys), shape, jnp.float32)

    stages = [{"qkv": normal(n, d, 3 * d), "out": normal(n, d, d), "up": normal(n, d, 4 * d),
               "down": normal(n, 4 * d, d), "norm1": jnp.ones((n, d)), "norm2": jnp.ones((n, d))}
              for _ in range(cfg.stages)]
    return {"embed": normal(cfg.vocab, d), "position": normal(cfg.seq, d), "final_norm": jnp.ones(d),
            "stages": stages}


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Root-mean-square normalisation over the last axis."""
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def attention(x: jax.Array, layer: dict, cfg: PipelinedGptConfig) -> jax.Array:
    """Causal self-attention; x is (batch, seq, width)."""
    b, s, d = x.shape
    q, k, v = jnp.split((x @ layer["qkv"]).reshape(b, s, cfg.heads, -1), 3, axis=-1)
    scores = jnp.einsum("bqhc,bkhc->bhqk", q, k) / jnp.sqrt(d / cfg.heads)
    scores = jnp.where(jnp.tril(jnp.ones((s, s), bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhc->bqhc", jax.nn.softmax(scores), v).reshape(b, s, d) @ layer["out"]


def loss_fn(params: dict, tokens: jax.Array, cfg: PipelinedGptConfig) -> jax.Array:
    """Mean cross-entropy of the next token; tokens is (batch, seq + 1)."""
    def block(x: jax.Array, layer: dict) -> tuple[jax.Array, None]:
        x = x + attention(norm(x, layer["norm1"]), layer, cfg)
        return x + jax.nn.gelu(norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"], None

    x = params["embed"][tokens[:, :-1]] + params["position"]
    for index, layers in enumerate(params["stages"]):
        x = hlorewrite.stage(x, index)  # the one line a pipeline needs
        x, _ = lax.scan(jax.checkpoint(block) if cfg.remat else block, x, layers)
    log_probs = jax.nn.log_softmax(norm(x, params["final_norm"]) @ params["embed"].T)
    return -jnp.mean(jnp.take_along_axis(log_probs, tokens[:, 1:, None], axis=-1))


def init_state(cfg: PipelinedGptConfig, seed: int = 0) -> dict:
    """Parameters, both AdamW moments and the step count."""
    params = init_params(cfg, jax.random.key(seed))
    mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))  # donated: no buffer may be in both
    return {"params": params, "mean": mean, "square": square, "count": jnp.zeros((), jnp.int32)}


def adamw(state: dict, grads: dict, rate: float = 1e-3, decay: float = 0.1, clip: float = 1.0) -> dict:
    """One AdamW update (Loshchilov and Hutter 2019), gradients scaled down to a global norm."""
    length = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, clip / length), grads)
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], grads)
    square = jax.tree.map(lambda s, g: 0.95 * s + 0.05 * g * g, state["square"], grads)
    c1, c2 = 1 - 0.9 ** count.astype(jnp.float32), 1 - 0.95 ** count.astype(jnp.float32)
    params = jax.tree.map(lambda p, m, s: p - rate * (m / c1 / (jnp.sqrt(s / c2) + 1e-8) + decay * p),
                          state["params"], mean, square)
    return {"params": params, "mean": mean, "square": square, "count": count}


def step(cfg: PipelinedGptConfig, state: dict, tokens: jax.Array) -> tuple[dict, jax.Array]:
    """One step; tokens is (micro_batches, batch, seq + 1)."""
    def micro_batch(carry: tuple, batch: jax.Array) -> tuple[tuple, None]:
        total, total_loss = carry
        loss, grads = jax.value_and_grad(loss_fn)(state["params"], batch, cfg)
        return (jax.tree.map(jnp.add, total, grads), total_loss + loss), None

    zeros = jax.tree.map(jnp.zeros_like, state["params"])
    (grads, loss), _ = lax.scan(micro_batch, (zeros, jnp.zeros(())), tokens)
    grads = jax.tree.map(lambda g: g / cfg.micro_batches, grads)
    return adamw(state, grads), loss / cfg.micro_batches


def make_step(cfg: PipelinedGptConfig, meshes: str = "(2x1),(2x1),(2x1),(2x1)", schedule: str = "1f1b", **options):
    """The pipelined step; the state is donated."""
    shapes = [tuple(map(int, mesh.strip("()").split("x"))) for mesh in meshes.split(",")]
    return hlorewrite.pipeline(functools.partial(step, cfg), meshes=shapes, schedule=schedule,
                               microbatches=cfg.micro_batches, donate_argnums=0, **options)


def main() -> None:
    """Trains on random tokens, or writes the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshes", default="(2x1),(2x1),(2x1),(2x1)")
    parser.add_argument("--schedule", default="1f1b")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--remat", action="store_true")
    parser.add_argument("--passes", default=None)
    parser.add_argument("--program", metavar="FILE")
    args = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 16)
    cfg = PipelinedGptConfig(remat=args.remat)
    pipelined = make_step(cfg, args.meshes, args.schedule, passes=args.passes)
    state = init_state(cfg)
    tokens = jax.random.randint(jax.random.key(1), (cfg.micro_batches, cfg.batch, cfg.seq + 1), 0, cfg.vocab)
    lowered = pipelined.lower(state, tokens)
    if args.program:
        with open(args.program, "w") as file:
            file.write(lowered.program())
        return
    print(lowered.report())
    for number in range(args.steps):
        state, loss = pipelined(state, tokens)
        print(f"step {number}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
