"""A GPT train step with parameters sharded over the data axis by hand: gathered layer by layer, gradients scattered."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import gpt
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def exported_fsdp_step(cfg: gpt.GptConfig, devices: int) -> bytes:
    """The step as a serialized ``jax.export``, for devices that need not be here; ``cfg.batch`` is that of one GPU."""
    cfg = replace(cfg, batch=cfg.batch * devices)
    mesh = AbstractMesh((devices,), ("data",), axis_types=(AxisType.Auto,))
    state, tokens = gpt.arguments(cfg, mesh)
    specs = {name: P() if name == "count" else jax.tree_util.tree_map_with_path(_spec, part)
             for name, part in state.items()}
    state = jax.tree.map(lambda x, spec: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, spec)),
                         state, specs)
    sharded = jax.shard_map(functools.partial(_local, cfg, devices), mesh=mesh, in_specs=(specs, P(None, "data")),
                            out_specs=(specs, P()), check_vma=False)
    return bytes(jax.export.export(jax.jit(sharded, donate_argnums=0), platforms=("cuda",))(state, tokens).serialize())


def _spec(path: tuple[Any, ...], _: object) -> P:
    """Sharded along the first dimension, which for stacked layers is the second."""
    return P(None, "data") if "layers" in str(path) else P("data")


def _gathered(weight: jax.Array) -> jax.Array:
    return lax.all_gather(weight.astype(jnp.bfloat16), "data", tiled=True)


def _loss(params: dict, tokens: jax.Array, cfg: gpt.GptConfig) -> jax.Array:
    @jax.checkpoint
    def block(x: jax.Array, layer: dict) -> tuple[jax.Array, None]:
        layer = jax.tree.map(_gathered, layer)
        x = x + gpt.attention(gpt.norm(x, layer["norm1"]), layer, cfg)
        return x + jax.nn.gelu(gpt.norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"], None

    embed = _gathered(params["embed"])
    x, _ = lax.scan(block, embed[tokens[:, :-1]] + _gathered(params["position"]), params["layers"])
    logits = (gpt.norm(x, _gathered(params["final_norm"])) @ embed.T).astype(jnp.float32)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1))


def _local(cfg: gpt.GptConfig, devices: int, state: dict, tokens: jax.Array) -> tuple[dict, jax.Array]:
    def micro_batch(carry: tuple, batch: jax.Array) -> tuple[tuple, None]:
        total, total_loss = carry
        loss, grads = jax.value_and_grad(_loss)(state["params"], batch, cfg)
        return (jax.tree.map(jnp.add, total, grads), total_loss + lax.pmean(loss, "data")), None

    zeros = jax.tree.map(jnp.zeros_like, state["params"])
    (grads, loss), _ = lax.scan(micro_batch, (zeros, jnp.zeros(())), tokens)
    grads = jax.tree.map(lambda g: g / cfg.micro_batches / devices, grads)
    return gpt.adamw(state, grads), loss / cfg.micro_batches
