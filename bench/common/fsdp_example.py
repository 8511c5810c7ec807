"""Hand-written FSDP steps of one model: gathered for each use, once with scatters in each micro-batch, or all once.

``python bench/common/fsdp_example.py OUT [A|B|C]`` writes a serialized ``jax.export`` for eight GPUs.
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

Params = tuple[jax.Array, jax.Array]


@dataclass(frozen=True)
class StackedModel:
    """Layers of two matrices.

    Attributes:
      layers: how many.
      width: of a layer's input.
      hidden: of what is between the two matrices.
      micro_batches: in a step.
      rows: sequences of a micro-batch on a device.
      length: of a sequence.
      devices: in the mesh.
    """

    layers: int = 4
    width: int = 256
    hidden: int = 1024
    micro_batches: int = 8
    rows: int = 8
    length: int = 64
    devices: int = 8

    @property
    def parameter_bytes(self) -> int:
        """Of the float32 parameters."""
        return 2 * 4 * self.layers * self.width * self.hidden


def _gathered(w: jax.Array) -> jax.Array:
    return lax.all_gather(w.astype(jnp.bfloat16), "data", axis=w.ndim - 2, tiled=True)


def _scattered(g: jax.Array) -> jax.Array:
    return lax.psum_scatter(g.astype(jnp.float32), "data", scatter_dimension=1, tiled=True)


def _loss(params: Params, x: jax.Array, gather: bool) -> jax.Array:
    @jax.checkpoint
    def layer(h: jax.Array, weights: Params) -> tuple[jax.Array, None]:
        up, down = map(_gathered, weights) if gather else weights
        return h + jnp.tanh(h @ up) @ down, None

    h, _ = lax.scan(layer, x.astype(jnp.bfloat16), params)
    return jnp.mean((h.astype(jnp.float32) - x) ** 2)


def _summed(loss, params: Params, like: Params, batches: jax.Array, each) -> Params:
    def micro_batch(total: Params, x: jax.Array) -> tuple[Params, None]:
        grads = jax.tree.map(each, jax.grad(loss)(params, x))
        return jax.tree.map(lambda t, g: t + g.astype(t.dtype), total, grads), None

    return lax.scan(micro_batch, jax.tree.map(lambda w: jnp.zeros(w.shape, jnp.float32), like), batches)[0]


def _step(variant: str, params: Params, batches: jax.Array) -> Params:
    if variant == "A":
        grads = _summed(lambda w, x: _loss(w, x, True), params, params, batches, lambda g: g)
    else:
        whole = jax.tree.map(_gathered, params)
        like, each = (params, _scattered) if variant == "C" else (whole, lambda g: g)
        grads = _summed(lambda w, x: _loss(w, x, False), whole, like, batches, each)
        grads = grads if variant == "C" else jax.tree.map(_scattered, grads)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)


def exported(variant: str = "A", model: StackedModel | None = None) -> bytes:
    """A step as a serialized ``jax.export``.

    Args:
      variant: ``A`` gathers each layer for each use and scatters its gradient in each micro-batch; ``C`` gathers once
        and scatters in each micro-batch; ``B`` gathers and scatters once.
      model: sizes.
    """
    model = model or StackedModel()
    mesh = AbstractMesh((model.devices,), ("data",), axis_types=(AxisType.Auto,))
    sharded = (P(None, "data", None),) * 2
    step = jax.shard_map(lambda params, batches: _step(variant, params, batches), mesh=mesh,
                         in_specs=(sharded, P(None, "data")), out_specs=sharded, check_vma=False)
    shapes = (model.layers, model.width, model.hidden), (model.layers, model.hidden, model.width)
    batches = (model.micro_batches, model.rows * model.devices, model.length, model.width)
    def argument(shape: tuple[int, ...], spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))

    return bytes(jax.export.export(jax.jit(step, donate_argnums=0), platforms=("cuda",))(
        tuple(argument(shape, sharded[0]) for shape in shapes), argument(batches, P(None, "data"))).serialize())


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(exported(*sys.argv[2:3]))
