"""Train steps of mixtures of experts whose tokens stay sharded by batch, as MaxText's dense path writes them.

Tokens are dispatched to slots of experts by a mask, ``[expert, batch, slot, feature]``; experts and batch are sharded
over one mesh axis, and a sharding constraint keeps the slots sharded by batch. ``tokens-to-experts`` moves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


@dataclass(frozen=True)
class ExpertModel:
    """Sizes of a model.

    Attributes:
      experts: how many; the mesh axis has ``devices`` places.
      devices: over which experts and batch are sharded.
      rows: of the whole batch.
      length: tokens of a row.
      slots: for each expert and row.
      width: features of a token.
      hidden: features inside an expert.
      layers: scanned, under full rematerialization.
      by: the dimension of slots that the constraint shards: ``batch`` or ``expert``.
    """

    experts: int = 8
    devices: int = 8
    rows: int = 8
    length: int = 4096
    slots: int = 1280
    width: int = 4096
    hidden: int = 14336
    layers: int = 8
    by: str = "batch"


def exported(model: ExpertModel, devices: Any = None) -> bytes:
    """A serialized ``jax.export`` of the step.

    Args:
      model: its sizes.
      devices: to lower for; those of JAX by default.
    """
    step, arguments = lowerable(model, devices)
    return bytes(jax.export.export(step, platforms=["cuda"])(*arguments).serialize())


def lowerable(model: ExpertModel, devices: Any = None) -> tuple[Any, tuple[Any, ...]]:
    """The jitted step and the shapes of its arguments."""
    chosen = np.array(jax.devices()[:model.devices] if devices is None else devices)
    if len(chosen) < model.devices:
        raise SystemExit(f"the experts are spread over {model.devices} devices, and JAX has {len(chosen)}; set "
                         f"XLA_FLAGS=--xla_force_host_platform_device_count={model.devices}")
    mesh = jax.sharding.Mesh(chosen, ("expert",), axis_types=(AxisType.Auto,))
    slots = P("expert") if model.by == "expert" else P(None, "expert")

    def kept(value: jax.Array, spec: P) -> jax.Array:
        return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, spec))

    def layer(x: jax.Array, weights: dict[str, jax.Array]) -> tuple[jax.Array, None]:
        half = {name: kept(value.astype(jnp.bfloat16), P("expert")) for name, value in weights.items()
                if name != "router"}
        scores = jax.nn.softmax(jnp.einsum("bsm,me->bse", x, weights["router"].astype(x.dtype)))
        places = jnp.cumsum(jnp.ones_like(scores, jnp.int32), 1) % model.slots
        mask = kept(scores[..., None] * jax.nn.one_hot(places, model.slots, dtype=x.dtype), P("expert"))
        sent = kept(jnp.einsum("bsec,bsm->ebcm", mask, x), slots)
        gate = kept(jnp.einsum("ebcm,emf->ebcf", sent, half["gate"]), slots)
        up = kept(jnp.einsum("ebcm,emf->ebcf", sent, half["up"]), slots)
        down = kept(jnp.einsum("ebcf,efm->ebcm", jax.nn.silu(gate) * up, half["down"]), slots)
        return kept(x + jnp.einsum("bsec,ebcm->bsm", mask, down), P("expert")), None

    def loss_of(parameters: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        out, _ = jax.lax.scan(jax.checkpoint(layer), x, parameters)
        return jnp.mean(out.astype(jnp.float32) ** 2)

    def step(parameters: dict[str, jax.Array], x: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x)
        return jax.tree.map(lambda old, change: old - 0.1 * change, parameters, gradients), loss

    def shape(sizes: tuple[int, ...], spec: P, kind: Any = jnp.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, kind, sharding=NamedSharding(mesh, spec))
    stacked = (model.layers, model.experts)
    parameters = {"gate": shape((*stacked, model.width, model.hidden), P(None, "expert")),
                  "up": shape((*stacked, model.width, model.hidden), P(None, "expert")),
                  "down": shape((*stacked, model.hidden, model.width), P(None, "expert")),
                  "router": shape((model.layers, model.width, model.experts), P())}
    x = shape((model.rows, model.length, model.width), P("expert"), jnp.bfloat16)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, parameters)
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings, None)), (parameters, x)
