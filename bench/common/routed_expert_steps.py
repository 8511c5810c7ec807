"""A train step of fine-grained experts, with the exchange of tokens written by hand.

Each device has several experts. A router gives each token to the best few of all experts, up to a capacity of each; an
all-to-all sends tokens to their experts, and another one sends the results back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from megatron_steps import norm

Params = dict[str, jax.Array]
_SPECS = {"router": P(), "qkv": P(), "out": P(), "gate": P(None, "expert"), "up": P(None, "expert"),
          "down": P(None, "expert")}


@dataclass(frozen=True)
class RoutedModel:
    """Sizes of a model.

    Attributes:
      experts: how many, over all devices.
      best: experts of a token.
      devices: over which experts and batch are sharded.
      rows: sequences of a device.
      length: tokens of a sequence.
      width: features of a token.
      hidden: features inside an expert.
      heads: of attention.
      layers: scanned, under full rematerialization.
      slack: places of an expert, as a multiple of what it gets on average.
    """

    experts: int = 64
    best: int = 8
    devices: int = 8
    rows: int = 2
    length: int = 2048
    width: int = 4096
    hidden: int = 2048
    heads: int = 32
    layers: int = 8
    slack: float = 1.25

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Parameter shapes."""
        n, d, e, f = self.layers, self.width, self.experts, self.hidden
        return {"router": (n, d, e), "qkv": (n, d, 3, d), "out": (n, d, d), "gate": (n, e, d, f), "up": (n, e, d, f),
                "down": (n, e, f, d)}

    # ---- the step of one device

    def step(self, params: Params, x: jax.Array) -> tuple[jax.Array, Params]:
        """The loss and new parameters."""
        def mean(params: Params) -> jax.Array:
            out, _ = lax.scan(jax.checkpoint(self._block), x, params)
            return lax.pmean(jnp.mean(out.astype(jnp.float32) ** 2), "expert")

        value, grads = jax.value_and_grad(mean)(params)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    def _block(self, x: jax.Array, layer: Params) -> tuple[jax.Array, None]:
        weights = {name: w.astype(x.dtype) for name, w in layer.items()}
        x = x + self._attention(norm(x), weights)
        rows = norm(x).reshape(-1, self.width)
        return x + self._experts(rows, layer["router"], weights).reshape(x.shape), None

    def _attention(self, x: jax.Array, weights: Params) -> jax.Array:
        q, k, v = (part.reshape(*x.shape[:2], self.heads, -1)
                   for part in jnp.moveaxis(jnp.einsum("bsd,dpe->bspe", x, weights["qkv"]), 2, 0))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(x.dtype), v)
        return mixed.reshape(x.shape) @ weights["out"]

    def _experts(self, rows: jax.Array, router: jax.Array, weights: Params) -> jax.Array:
        places = int(self.slack * self.best * len(rows) / self.experts)
        shares, chosen = lax.top_k(jax.nn.softmax(rows.astype(jnp.float32) @ router), self.best)
        taken = jax.nn.one_hot(chosen.reshape(-1), self.experts, dtype=jnp.int32)
        place = ((jnp.cumsum(taken, 0) - 1) * taken).sum(-1)
        slot = jnp.where(place < places, chosen.reshape(-1) * places + place, self.experts * places)
        slots = jnp.zeros((self.experts * places + 1, self.width), rows.dtype)
        sent = slots.at[slot].set(jnp.repeat(rows, self.best, 0))[:-1]
        made = self._exchanged(self._computed(self._exchanged(sent.reshape(self.devices, -1, self.width)), weights))
        back = jnp.concatenate([made.reshape(-1, self.width), jnp.zeros((1, self.width), rows.dtype)])[slot]
        return (back.reshape(len(rows), self.best, -1) * shares[..., None].astype(rows.dtype)).sum(1)

    def _exchanged(self, rows: jax.Array) -> jax.Array:
        return lax.all_to_all(rows, "expert", 0, 0, tiled=True)

    def _computed(self, rows: jax.Array, weights: Params) -> jax.Array:
        own = self.experts // self.devices
        x = rows.reshape(self.devices, own, -1, self.width).swapaxes(0, 1).reshape(own, -1, self.width)
        hidden = jax.nn.silu(jnp.einsum("ecd,edf->ecf", x, weights["gate"])) * jnp.einsum(
            "ecd,edf->ecf", x, weights["up"])
        made = jnp.einsum("ecf,efd->ecd", hidden, weights["down"])
        return made.reshape(own, self.devices, -1, self.width).swapaxes(0, 1).reshape(self.devices, -1, self.width)


def exported(model: RoutedModel) -> bytes:
    """The step as a serialized ``jax.export`` for GPUs."""
    mesh = AbstractMesh((model.devices,), ("expert",), axis_types=(AxisType.Auto,))

    def argument(shape: tuple[int, ...], kind: Any, spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, kind, sharding=NamedSharding(mesh, spec))
    params = {name: argument(shape, jnp.float32, _SPECS[name]) for name, shape in model.shapes().items()}
    x = argument((model.rows * model.devices, model.length, model.width), jnp.bfloat16, P("expert"))
    step = jax.jit(jax.shard_map(model.step, mesh=mesh, in_specs=(_SPECS, P("expert")), out_specs=(P(), _SPECS)),
                   donate_argnums=0)
    return bytes(jax.export.export(step, platforms=("cuda",))(params, x).serialize())
