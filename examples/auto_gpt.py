"""The same GPT auto-sharded: plain ``jit`` over dp, fsdp, dp x tp, fsdp x tp or dp x fsdp x tp, with rematerialisation.

No collective is written here; XLA's partitioner inserts them. ``hlorewrite.optimize`` exposes, rewrites and puts them
back with the same shardings.
"""

from __future__ import annotations

import functools

import gpt
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LAYOUTS = {
    "dp": {"data": 8},
    "dp_tp": {"data": 4, "model": 2},
    "fsdp": {"fsdp": 8},
    "fsdp_tp": {"fsdp": 4, "model": 2},
    "dp_fsdp_tp": {"data": 2, "fsdp": 2, "model": 2},
}
COLUMNS = ("qkv", "up")  # weights whose last axis is split over the model axis; "out" and "down" split their rows


def partition(path: str, rank: int, axes: dict[str, int]) -> P:
    """How one parameter is laid out."""
    model = "model" if "model" in axes else None
    shards = "fsdp" if "fsdp" in axes else None
    if rank == 3:
        return P(None, shards, model) if any(name in path for name in COLUMNS) else P(None, model, shards)
    return P(None, shards) if rank == 2 and "embed" in path else P()


def batch_partition(axes: dict[str, int]) -> P:
    """Tokens are (micro_batches, batch, seq + 1); the batch is split over every axis but ``model``."""
    return P(None, tuple(name for name in axes if name != "model"))


def step(cfg: gpt.GptConfig, state: dict, tokens: jax.Array) -> tuple[dict, jax.Array]:
    """Global view of one step: micro-batches accumulated in a scan, then AdamW."""
    def micro_batch(carry: tuple, batch: jax.Array) -> tuple[tuple, None]:
        total, total_loss = carry
        loss, grads = jax.value_and_grad(jax.checkpoint(functools.partial(gpt.loss_fn, cfg=cfg)))(
            state["params"], batch)
        return (jax.tree.map(jnp.add, total, grads), total_loss + loss), None

    zeros = jax.tree.map(jnp.zeros_like, state["params"])
    (grads, loss), _ = lax.scan(micro_batch, (zeros, jnp.zeros(())), tokens)
    grads = jax.tree.map(lambda g: g / cfg.micro_batches, grads)
    return gpt.adamw(state, grads), loss / cfg.micro_batches


def shardings(cfg: gpt.GptConfig, mesh: jax.sharding.Mesh) -> tuple[dict, NamedSharding]:
    """Shardings of (state, tokens)."""
    axes = dict(mesh.shape)
    state = jax.eval_shape(functools.partial(gpt.init_state, cfg))
    laid_out = jax.tree_util.tree_map_with_path(
        lambda path, x: NamedSharding(mesh, partition(jax.tree_util.keystr(path), len(x.shape), axes)), state)
    return laid_out, NamedSharding(mesh, batch_partition(axes))


def make_mesh(layout: str, devices: list | None = None) -> jax.sharding.Mesh:
    """One of ``LAYOUTS`` over eight devices."""
    axes = LAYOUTS[layout]
    return jax.make_mesh(tuple(axes.values()), tuple(axes), devices=devices,
                         axis_types=(jax.sharding.AxisType.Auto,) * len(axes))


def make_step(cfg: gpt.GptConfig, mesh: jax.sharding.Mesh):
    """The jitted step; the state is donated and keeps its shardings."""
    state, tokens = shardings(cfg, mesh)
    return jax.jit(functools.partial(step, cfg), in_shardings=(state, tokens),
                   out_shardings=(state, NamedSharding(mesh, P())), donate_argnums=0)


def arguments(cfg: gpt.GptConfig, mesh: jax.sharding.Mesh) -> tuple[dict, jax.ShapeDtypeStruct]:
    """Shapes, dtypes and shardings of (state, tokens)."""
    laid_out, tokens = shardings(cfg, mesh)
    state = jax.eval_shape(functools.partial(gpt.init_state, cfg))
    return (jax.tree.map(lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s), state, laid_out),
            jax.ShapeDtypeStruct((cfg.micro_batches, cfg.batch, cfg.seq + 1), jnp.int32, sharding=tokens))
