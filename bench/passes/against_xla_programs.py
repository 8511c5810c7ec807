"""Auto-sharded programs to compare with XLA alone: plain ``jit`` with shardings, small enough to compile in seconds."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import auto_gpt
import gpt
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

MICRO_BATCHES = 8


@dataclass(frozen=True)
class GptLayout:
    """A mesh, how the step is laid out on it, and how its loss is written.

    Attributes:
      axes: mesh axes and sizes, in the names of ``examples/auto_gpt.py``.
      constrained: activations carry a sharding constraint after each block.
      one_hot: the loss multiplies with one-hot targets in place of gathering log-probabilities (whose gradient is a
        scatter).
    """

    axes: dict[str, int]
    constrained: bool = False
    one_hot: bool = False


LAYOUTS = {
    "fsdp": GptLayout({"fsdp": 8}),
    "hsdp": GptLayout({"data": 2, "fsdp": 4}),
    "fsdp constrained": GptLayout({"fsdp": 8}, constrained=True),
    "hsdp constrained": GptLayout({"data": 2, "fsdp": 4}, constrained=True),
    "dp x tp": GptLayout({"data": 4, "model": 2}),
    "dp": GptLayout({"data": 8}),
    "fsdp one-hot": GptLayout({"fsdp": 8}, one_hot=True),
}


def mesh_of(axes: dict[str, int]) -> jax.sharding.Mesh:
    """A mesh over eight devices whose axes XLA's partitioner handles."""
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(jax.sharding.AxisType.Auto,) * len(axes))


def loss_fn(params: dict, tokens: jax.Array, cfg: gpt.GptConfig, batch: NamedSharding, layout: GptLayout) -> jax.Array:
    """The loss of ``examples/gpt.py``, with constraints and one-hot targets where the layout has them."""
    def pinned(x: jax.Array) -> jax.Array:
        return lax.with_sharding_constraint(x, batch) if layout.constrained else x

    def block(x: jax.Array, layer: dict) -> tuple[jax.Array, None]:
        x = pinned(x + gpt.attention(gpt.norm(x, layer["norm1"]), layer, cfg))
        return pinned(x + jax.nn.gelu(gpt.norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"]), None

    x = pinned(params["embed"][tokens[:, :-1]] + params["position"])
    x, _ = lax.scan(block, x, params["layers"])
    log_probs = jax.nn.log_softmax(pinned(gpt.norm(x, params["final_norm"])) @ params["embed"].T)
    if layout.one_hot:
        return -jnp.mean(jnp.sum(log_probs * jax.nn.one_hot(tokens[:, 1:], cfg.vocab), axis=-1))
    return -jnp.mean(jnp.take_along_axis(log_probs, tokens[:, 1:, None], axis=-1))


def gpt_step(cfg: gpt.GptConfig, layout: GptLayout) -> jax.stages.Lowered:
    """A GPT step: gradients of micro-batches accumulated in a scan, then AdamW."""
    mesh = mesh_of(layout.axes)
    state_at, tokens_at = auto_gpt.shardings(cfg, mesh)
    names = tuple(name for name in layout.axes if name != "model")
    batch = NamedSharding(mesh, P(names, None, None))
    loss = jax.checkpoint(functools.partial(loss_fn, cfg=cfg, batch=batch, layout=layout))

    def step(state: dict, tokens: jax.Array) -> tuple[dict, jax.Array]:
        def micro_batch(carry: tuple, each: jax.Array) -> tuple[tuple, None]:
            total, total_loss = carry
            value, grads = jax.value_and_grad(loss)(state["params"], each)
            return (jax.tree.map(jnp.add, total, grads), total_loss + value), None

        zeros = jax.tree.map(jnp.zeros_like, state["params"])
        (grads, value), _ = lax.scan(micro_batch, (zeros, jnp.zeros(())), tokens)
        grads = jax.tree.map(lambda g: g / cfg.micro_batches, grads)
        return gpt.adamw(state, grads), value / cfg.micro_batches

    jitted = jax.jit(step, in_shardings=(state_at, tokens_at), out_shardings=(state_at, NamedSharding(mesh, P())),
                     donate_argnums=0)
    return jitted.lower(*auto_gpt.arguments(cfg, mesh))


def _accumulating(loss: Callable[..., jax.Array], params: dict, data: Any) -> jax.stages.Lowered:
    """A data-parallel step that sums gradients of micro-batches in a scan and descends; parameters are replicated."""
    mesh = mesh_of({"data": 8})
    everywhere, split = NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "data"))

    def step(params: dict, data: Any) -> dict:
        def micro_batch(total: dict, each: Any) -> tuple[dict, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, each)), None

        total, _ = lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, params), data)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, total)

    def spec(x: jax.ShapeDtypeStruct, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)

    return jax.jit(step, out_shardings=everywhere, donate_argnums=0).lower(
        jax.tree.map(lambda x: spec(x, everywhere), params), jax.tree.map(lambda x: spec(x, split), data))


def _float(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _int(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def mlp_step(width: int = 256) -> jax.stages.Lowered:
    """A data-parallel MLP of four layers."""
    def loss(params: dict, each: dict) -> jax.Array:
        x = each["x"]
        for name in sorted(params):
            x = jnp.tanh(x @ params[name])
        return jnp.mean((x - each["y"]) ** 2)

    data = {name: _float(MICRO_BATCHES, 64, width) for name in ("x", "y")}
    return _accumulating(loss, {f"w{i}": _float(width, width) for i in range(4)}, data)


def embedding_step(vocab: int = 4096, width: int = 128) -> jax.stages.Lowered:
    """A data-parallel embedding: its gradient is a scatter into the accumulated table."""
    def loss(params: dict, each: dict) -> jax.Array:
        return jnp.mean((jnp.tanh(params["table"][each["x"]]) @ params["w"]) ** 2)

    return _accumulating(loss, {"table": _float(vocab, width), "w": _float(width, width)},
                         {"x": _int(MICRO_BATCHES, 64, 16)})


def scanned_step(layers: int = 6, width: int = 128) -> jax.stages.Lowered:
    """Data-parallel layers that the model scans over: gradients leave the inner loop stacked."""
    def loss(params: dict, each: dict) -> jax.Array:
        def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
            return jnp.tanh(x @ w), None
        return jnp.mean(lax.scan(layer, each["x"], params["w"])[0] ** 2)

    return _accumulating(loss, {"w": _float(layers, width, width)}, {"x": _float(MICRO_BATCHES, 64, width)})


def programs(size: str) -> dict[str, Callable[[], jax.stages.Lowered]]:
    """Name -> what lowers the program, for CPU devices; GPT steps of one of ``gpt.SIZES``."""
    made: dict[str, Callable[[], jax.stages.Lowered]] = {
        f"gpt {name}": functools.partial(gpt_step, gpt.SIZES[size], layout) for name, layout in LAYOUTS.items()}
    return made | {"mlp": mlp_step, "embedding": embedding_step, "scanned layers": scanned_step}
