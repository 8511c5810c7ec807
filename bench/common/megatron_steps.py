"""A transformer with tensor parallelism written by hand: blocks as in Megatron-LM, each with two sums over ``model``.

``python bench/common/megatron_steps.py OUT [--layers N] [--remat] [--scan] [--dropout X]`` writes a serialized
``jax.export`` of a train step for eight GPUs: two data-parallel replicas of four tensor-parallel devices.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Params = dict[str, Any]
BLOCK_SPECS = {"norm1": P(None, None), "qkv": P(None, None, None, "model"), "out": P(None, "model", None),
               "norm2": P(None, None), "up": P(None, None, "model"), "down": P(None, "model", None)}
SPECS: Params = {"embed": P(), "head": P(None, "model"), "blocks": BLOCK_SPECS}


@dataclass(frozen=True)
class MegatronModel:
    """A GPT-like model and how its step is written.

    Attributes:
      layers: blocks.
      width: of the residual stream; the hidden layer is four times as wide.
      heads: of attention, over all devices.
      rows: sequences of a data-parallel replica.
      length: of a sequence.
      vocab: tokens.
      data: data-parallel replicas.
      model: tensor-parallel devices of each.
      scan: the blocks are a ``lax.scan`` over stacked parameters.
      remat: each block is under ``jax.checkpoint``.
      sequence: what stands between the blocks' products is sharded along the sequence, as with Megatron's
        ``--sequence-parallel``.
      dropout: share of the activations that is dropped after each sum.
      compute: element type of the activations.
      micro_batches: how many divide the sequences of a replica; their gradients are summed up.
    """

    layers: int = 16
    width: int = 1024
    heads: int = 8
    rows: int = 16
    length: int = 512
    vocab: int = 4096
    data: int = 2
    model: int = 4
    scan: bool = True
    remat: bool = False
    sequence: bool = False
    dropout: float = 0.0
    compute: str = "bfloat16"
    micro_batches: int = 1

    def shapes(self) -> Params:
        """Parameter shapes."""
        n, d = self.layers, self.width
        return {"embed": (self.vocab, d), "head": (d, self.vocab),
                "blocks": {"norm1": (n, d), "qkv": (n, d, 3, d), "out": (n, d, d), "norm2": (n, d),
                           "up": (n, d, 4 * d), "down": (n, 4 * d, d)}}

    def step(self, mesh: Mesh | AbstractMesh) -> Any:
        """The jitted step: parameters, tokens, targets and a seed to the loss and new parameters."""
        data = P("data", None)
        return jax.jit(jax.shard_map(self._step, mesh=mesh, in_specs=(SPECS, data, data, P()),
                                     out_specs=(P(), SPECS)), donate_argnums=0)

    def arguments(self, mesh: Mesh | AbstractMesh) -> tuple[Any, ...]:
        """Shapes and shardings of the arguments of the step."""
        def argument(shape: tuple[int, ...], kind: Any, spec: P) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(shape, kind, sharding=NamedSharding(mesh, spec))

        params = jax.tree.map(lambda shape, spec: argument(shape, jnp.float32, spec), self.shapes(), SPECS,
                              is_leaf=lambda leaf: isinstance(leaf, tuple) and not isinstance(leaf, P))
        tokens = argument((self.rows * self.data, self.length), jnp.int32, P("data", None))
        return params, tokens, tokens, argument((), jnp.uint32, P())

    # ---- the step of one device

    def _step(self, params: Params, tokens: jax.Array, targets: jax.Array, seed: jax.Array) -> tuple[Any, Params]:
        def mean(params: Params, tokens: jax.Array, targets: jax.Array) -> jax.Array:
            return lax.pmean(self._loss(params, tokens, targets, seed), "data")

        def added(total: tuple[Any, Params], batch: tuple[jax.Array, jax.Array]) -> tuple[tuple[Any, Params], None]:
            return jax.tree.map(jnp.add, total, jax.value_and_grad(mean)(params, *batch)), None

        if self.micro_batches == 1:
            value, grads = jax.value_and_grad(mean)(params, tokens, targets)
        else:
            batches = tuple(x.reshape(self.micro_batches, -1, self.length) for x in (tokens, targets))
            none = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
            (value, grads), _ = lax.scan(added, none, batches)
        rate = 0.1 / self.micro_batches
        return value / self.micro_batches, jax.tree.map(lambda p, g: p - rate * g, params, grads)

    def _loss(self, params: Params, tokens: jax.Array, targets: jax.Array, seed: jax.Array) -> jax.Array:
        x = params["embed"].astype(self.compute)[tokens]
        if self.sequence:
            size = self.length // self.model
            x = lax.dynamic_slice_in_dim(x, lax.axis_index("model") * size, size, axis=1)
        block = jax.checkpoint(self._block) if self.remat else self._block
        keys = jax.random.split(jax.random.key(seed), self.layers)
        if self.scan:
            x, _ = lax.scan(lambda x, each: (block(x, *each), None), x, (params["blocks"], keys))
        else:
            for k in range(self.layers):
                x = block(x, jax.tree.map(lambda w, k=k: w[k], params["blocks"]), keys[k])
        logits = (self._whole(norm(x)) @ params["head"].astype(self.compute)).astype(jnp.float32)
        return cross_entropy(logits, targets)

    def _block(self, x: jax.Array, layer: Params, key: jax.Array) -> jax.Array:
        keys = jax.random.split(key)
        weights = {name: w.astype(self.compute) for name, w in layer.items()}
        x = x + self._dropped(self._summed(self._attention(self._whole(norm(x) * weights["norm1"]), weights)), keys[0])
        hidden = jax.nn.gelu(self._whole(norm(x) * weights["norm2"]) @ weights["up"])
        return x + self._dropped(self._summed(hidden @ weights["down"]), keys[1])

    def _whole(self, x: jax.Array) -> jax.Array:
        return lax.all_gather(x, "model", axis=1, tiled=True) if self.sequence else x

    def _summed(self, x: jax.Array) -> jax.Array:
        return lax.psum_scatter(x, "model", scatter_dimension=1, tiled=True) if self.sequence else lax.psum(x, "model")

    def _dropped(self, x: jax.Array, key: jax.Array) -> jax.Array:
        if not self.dropout:
            return x
        return jnp.where(jax.random.bernoulli(key, 1 - self.dropout, x.shape), x / (1 - self.dropout), 0)

    def _attention(self, x: jax.Array, weights: Params) -> jax.Array:
        rows, length, _ = x.shape
        q, k, v = (part.reshape(rows, length, self.heads // self.model, -1)
                   for part in jnp.moveaxis(jnp.einsum("bsd,dpe->bspe", x, weights["qkv"]), 2, 0))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)
        return mixed.reshape(rows, length, -1) @ weights["out"]


def norm(x: jax.Array) -> jax.Array:
    """Divides rows by their root mean square, computed in float32."""
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype)


def cross_entropy(logits: jax.Array, targets: jax.Array) -> jax.Array:
    """The mean loss of logits whose vocabulary is sharded over ``model``."""
    largest = lax.pmax(lax.stop_gradient(logits).max(axis=-1), "model")
    total = lax.psum(jnp.exp(logits - largest[..., None]).sum(axis=-1), "model")
    place = targets - lax.axis_index("model") * logits.shape[-1]
    here = (place >= 0) & (place < logits.shape[-1])
    found = jnp.take_along_axis(logits, jnp.clip(place, 0, logits.shape[-1] - 1)[..., None], axis=-1)[..., 0]
    return jnp.mean(jnp.log(total) + largest - lax.psum(jnp.where(here, found, 0.0), "model"))


def exported(model: MegatronModel) -> bytes:
    """The step as a serialized ``jax.export`` for GPUs."""
    mesh = AbstractMesh((model.data, model.model), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    return bytes(jax.export.export(model.step(mesh), platforms=("cuda",))(*model.arguments(mesh)).serialize())


def main() -> None:
    """Writes a step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    for name in ("layers", "width", "rows", "length"):
        parser.add_argument(f"--{name}", type=int, default=getattr(MegatronModel, name))
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--scan", action="store_true")
    parser.add_argument("--remat", action="store_true")
    args = vars(parser.parse_args())
    out: Path = args.pop("out")
    out.write_bytes(exported(MegatronModel(**args)))


if __name__ == "__main__":
    main()
