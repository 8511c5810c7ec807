"""GPT train steps that the timeline is measured on: the gradients averaged in every micro-batch (A) or after the loop
(B), the layers scanned or unrolled. Matrix products in bf16, parameters and gradients in f32."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import gpt
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

LARGE = gpt.GptConfig(vocab=32768, layers=8, heads=16, width=2048, seq=1024, batch=4, micro_batches=8)
"""1792 MiB of f32 gradients, 4096 tokens of a micro-batch on each GPU; ``batch`` counts sequences of one GPU."""


@dataclass(frozen=True)
class GptStep:
    """One of the steps.

    Attributes:
      name: as the tables call it.
      every: whether gradients are averaged in every micro-batch.
      scanned: whether the layers are a loop.
      batches_scanned: whether the micro-batches are a loop.
    """

    name: str
    every: bool
    scanned: bool
    batches_scanned: bool = True


STEPS = (GptStep("A scanned", True, True), GptStep("B scanned", False, True), GptStep("A unrolled", True, False),
         GptStep("B unrolled", False, False))


def exported_step(step: GptStep, cfg: gpt.GptConfig, devices: int) -> bytes:
    """A step as a serialized ``jax.export``, for devices that need not be here."""
    cfg = replace(cfg, batch=cfg.batch * devices)
    mesh = AbstractMesh((devices,), ("data",), axis_types=(AxisType.Auto,))
    local = functools.partial(_local, cfg, step)
    sharded = jax.shard_map(local, mesh=mesh, in_specs=(P(), P(None, "data")), out_specs=(P(), P()), check_vma=False)
    state, tokens = gpt.arguments(cfg, mesh)
    if not step.scanned:
        state = {name: part if name == "count" else _unstacked(part, cfg.layers) for name, part in state.items()}
    jitted = jax.jit(sharded, donate_argnums=0)
    return bytes(jax.export.export(jitted, platforms=("cuda",))(state, tokens).serialize())


def _unstacked(params: dict, layers: int) -> dict:
    one = {name: jax.ShapeDtypeStruct(w.shape[1:], w.dtype, sharding=w.sharding)
           for name, w in params["layers"].items()}
    return params | {"layers": [dict(one) for _ in range(layers)]}


def _loss(params: dict, tokens: jax.Array, cfg: gpt.GptConfig) -> jax.Array:
    def block(x: jax.Array, layer: dict) -> tuple[jax.Array, None]:
        layer = jax.tree.map(lambda w: w.astype(jnp.bfloat16), layer)
        x = x + gpt.attention(gpt.norm(x, layer["norm1"]), layer, cfg)
        return x + jax.nn.gelu(gpt.norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"], None

    embed = params["embed"].astype(jnp.bfloat16)
    x = embed[tokens[:, :-1]] + params["position"].astype(jnp.bfloat16)
    if isinstance(params["layers"], list):
        for layer in params["layers"]:
            x, _ = block(x, layer)
    else:
        x, _ = lax.scan(block, x, params["layers"])
    logits = (gpt.norm(x, params["final_norm"].astype(jnp.bfloat16)) @ embed.T).astype(jnp.float32)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1))


def _local(cfg: gpt.GptConfig, step: GptStep, state: dict, tokens: jax.Array) -> tuple[dict, jax.Array]:
    def micro_batch(carry: tuple, batch: jax.Array) -> tuple[tuple, None]:
        total, total_loss = carry
        loss, grads = jax.value_and_grad(_loss)(state["params"], batch, cfg)
        if step.every:
            loss, grads = lax.pmean((loss, grads), "data")
        return (jax.tree.map(jnp.add, total, grads), total_loss + loss), None

    zeros = jax.tree.map(jnp.zeros_like, state["params"])
    grads, loss = zeros, jnp.zeros(())
    if step.batches_scanned:
        (grads, loss), _ = lax.scan(micro_batch, (grads, loss), tokens)
    else:
        for batch in range(cfg.micro_batches):
            (grads, loss), _ = micro_batch((grads, loss), tokens[batch])
    if not step.every:
        loss, grads = lax.pmean((loss, grads), "data")
    grads = jax.tree.map(lambda g: g / cfg.micro_batches, grads)
    return gpt.adamw(state, grads), loss / cfg.micro_batches
