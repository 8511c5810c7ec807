"""A small bf16 GPT with dropout, gradient accumulation and AdamW, auto-sharded over the data axis.

All random numbers of a step come from the key in its state: batches, and dropout of each micro-batch and layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.passmanager.named import PIPELINES

State = dict[str, Any]


@dataclass(frozen=True)
class DropoutGpt:
    """Sizes of the model and of its step; ``batch`` is the rows of one micro-batch on all devices."""

    vocab: int = 32
    width: int = 32
    layers: int = 2
    heads: int = 2
    length: int = 16
    batch: int = 16
    micro_batches: int = 4
    dropout: float = 0.1
    rate: float = 3e-3


def data_mesh() -> Mesh:
    """All devices along one axis."""
    return jax.make_mesh((len(jax.devices()),), ("data",), axis_types=(AxisType.Auto,))


def initial_state(cfg: DropoutGpt, seed: int, mesh: Mesh) -> State:
    """Parameters, AdamW's moments, step count and random key, replicated; the seed decides all of them."""
    def made(seed: jax.Array) -> State:
        first, rest = jax.random.split(jax.random.key(seed))
        keys = iter(jax.random.split(first, 8))

        def normal(*shape: int) -> jax.Array:
            return 0.05 * jax.random.normal(next(keys), shape)

        params = {"embed": normal(cfg.vocab, cfg.width), "position": normal(cfg.length, cfg.width),
                  "qkv": normal(cfg.layers, cfg.width, 3 * cfg.width), "out": normal(cfg.layers, cfg.width, cfg.width),
                  "up": normal(cfg.layers, cfg.width, 4 * cfg.width),
                  "down": normal(cfg.layers, 4 * cfg.width, cfg.width)}
        zeros = jax.tree.map(jnp.zeros_like, params)
        return {"params": params, "mean": zeros, "square": zeros, "count": jnp.zeros((), jnp.int32),
                "key": jax.random.key_data(rest)}
    return jax.jit(made, out_shardings=NamedSharding(mesh, P()))(jnp.int32(seed))


def make_step(cfg: DropoutGpt, mesh: Mesh) -> Any:
    """The jitted step: state to new state, loss, and the dropout masks of the embeddings as one sum of bits."""
    rows = NamedSharding(mesh, P(None, "data"))

    def step(state: State) -> tuple[State, jax.Array, jax.Array]:
        key, data, drop = jax.random.split(jax.random.wrap_key_data(state["key"]), 3)
        tokens = lax.with_sharding_constraint(_batches(cfg, data), rows)

        def micro_batch(carry: tuple[Any, jax.Array, jax.Array], given: tuple[jax.Array, jax.Array]) -> Any:
            total, losses, masks = carry
            (loss, mask), grads = jax.value_and_grad(_loss, has_aux=True)(state["params"], *given, cfg)
            return (jax.tree.map(jnp.add, total, grads), losses + loss, masks + mask), None

        zeros = jax.tree.map(jnp.zeros_like, state["params"])
        start = zeros, jnp.zeros(()), jnp.zeros((cfg.length, cfg.width), jnp.int32)
        (grads, loss, masks), _ = lax.scan(micro_batch, start, (tokens, jax.random.split(drop, cfg.micro_batches)))
        grads = jax.tree.map(lambda g: g / cfg.micro_batches, grads)
        return _adamw(state, grads, key, cfg), loss / cfg.micro_batches, masks
    return jax.jit(step)


def rewritten_step(cfg: DropoutGpt, mesh: Mesh, **options: Any) -> Any:
    """The same step through ``hlorewrite.optimize`` with the pipeline ``comm``."""
    jitted: Any = make_step(cfg, mesh)
    return hlorewrite.optimize(jitted, passes=PIPELINES["comm"], **options)


def _batches(cfg: DropoutGpt, key: jax.Array) -> jax.Array:
    """Sequences of a noisy rule: each token follows from the one before it, or in one case of ten from none.

    The loss goes down gradually. With a rule of two tokens it drops at once, in one run hundreds of steps after another
    from the same seed, and final losses say little.
    """
    first, noise, which = jax.random.split(key, 3)
    shape = cfg.micro_batches, cfg.batch
    start = jax.random.randint(first, shape, 0, cfg.vocab)
    noisy = jax.random.bernoulli(which, 0.1, (cfg.length, *shape))
    other = jax.random.randint(noise, (cfg.length, *shape), 0, cfg.vocab)

    def following(token: jax.Array, drawn: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        token = jnp.where(drawn[0], drawn[1], (token * 3 + 5) % cfg.vocab)
        return token, token

    _, rest = lax.scan(following, start, (noisy, other))
    return jnp.concatenate([start[..., None], jnp.moveaxis(rest, 0, -1)], axis=-1)


def _loss(params: State, tokens: jax.Array, key: jax.Array, cfg: DropoutGpt) -> tuple[jax.Array, jax.Array]:
    weights = jax.tree.map(lambda w: w.astype(jnp.bfloat16), params)
    keys = jax.random.split(key, 2 * cfg.layers + 1)
    kept = jax.random.bernoulli(keys[-1], 1 - cfg.dropout, (cfg.batch, cfg.length, cfg.width))
    x = jnp.where(kept, (weights["embed"][tokens[:, :-1]] + weights["position"]) / (1 - cfg.dropout), 0)
    x = x.astype(jnp.bfloat16)
    for layer in range(cfg.layers):
        x = x + _dropped(_attention(_norm(x), weights["qkv"][layer], weights["out"][layer], cfg), keys[2 * layer], cfg)
        hidden = jax.nn.gelu(_norm(x) @ weights["up"][layer]) @ weights["down"][layer]
        x = x + _dropped(hidden, keys[2 * layer + 1], cfg)
    logits = (_norm(x) @ weights["embed"].T).astype(jnp.float32)
    losses = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
    return -jnp.mean(losses), kept.astype(jnp.int32).sum(axis=0)


def _dropped(x: jax.Array, key: jax.Array, cfg: DropoutGpt) -> jax.Array:
    kept = jax.random.bernoulli(key, 1 - cfg.dropout, x.shape)
    return jnp.where(kept, x / (1 - cfg.dropout), 0).astype(x.dtype)


def _norm(x: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-5)).astype(x.dtype)


def _attention(x: jax.Array, qkv: jax.Array, out: jax.Array, cfg: DropoutGpt) -> jax.Array:
    shape = cfg.batch, cfg.length, cfg.heads, cfg.width // cfg.heads
    query, key, value = (part.reshape(shape) for part in jnp.split(x @ qkv, 3, axis=-1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key).astype(jnp.float32) * shape[-1] ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((cfg.length, cfg.length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(x.dtype), value)
    return mixed.reshape(x.shape) @ out


def _adamw(state: State, grads: State, key: jax.Array, cfg: DropoutGpt) -> State:
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], grads)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], grads)

    def updated(p: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        scaled = (m / (1 - 0.9 ** count)) / (jnp.sqrt(s / (1 - 0.99 ** count)) + 1e-8)
        return p - cfg.rate * (scaled + 0.01 * p)

    return {"params": jax.tree.map(updated, state["params"], mean, square), "mean": mean, "square": square,
            "count": count, "key": jax.random.key_data(key)}
