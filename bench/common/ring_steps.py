"""Steps whose collective-permutes travel along a ring: ring attention, and a circular pipeline of stages.

``python bench/common/ring_steps.py NAME OUT`` writes a serialized ``jax.export`` of the step for eight GPUs:

* ``attention``: a layer's attention over a sequence that is sharded by eight. Keys and values pass from device to
  device (Liu, Zaharia, Abbeel: Ring Attention with Blockwise Transformers, 2023), and their gradients follow;
* ``first``: the same, but each step asks for its keys and values before it uses them;
* ``pipeline``: eight stages of one layer each, whose activations pass to the next stage after each step, as in GSPMD's
  and MaxText's pipelines (Xu et al. 2021, section 3.3).
"""

from __future__ import annotations

import argparse
import functools
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = 8
Parts = tuple[jax.Array, ...]


def _passed(value: Any, back: bool = False) -> Any:
    pairs = [(k, (k + 1) % DEVICES) for k in range(DEVICES)]
    return jax.tree.map(lambda x: lax.ppermute(x, "ring", [(b, a) for a, b in pairs] if back else pairs), value)


def _block(q: jax.Array, k: jax.Array) -> jax.Array:
    return jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def ring_attention(q: jax.Array, k: jax.Array, v: jax.Array, before: bool) -> jax.Array:
    """Attention of a device's queries over the keys and values of all devices, ``[batch, length, heads, depth]``.

    Args:
      before: whether a step asks for its keys and values before it uses them, not after.
    """
    return _forward(q, k, v, before)[0]


def _forward(q: jax.Array, k: jax.Array, v: jax.Array, before: bool) -> tuple[jax.Array, Parts]:
    rows, length, heads, depth = q.shape

    def turn(carry: Any, _: None) -> tuple[Any, None]:
        total, largest, weight, keys = carry
        if before:
            keys = _passed(keys)
        scores = _block(q, keys[0])
        top = jnp.maximum(largest, scores.max(-1))
        shares = jnp.exp(scores - top[..., None])
        shrink = jnp.exp(largest - top)
        part = jnp.einsum("bhqk,bkhd->bhqd", shares.astype(q.dtype), keys[1], preferred_element_type=jnp.float32)
        total, weight = total * shrink[..., None] + part, weight * shrink + shares.sum(-1)
        return (total, top, weight, keys if before else _passed(keys)), None

    start = (jnp.zeros((rows, heads, length, depth), jnp.float32), jnp.full((rows, heads, length), -1e30),
             jnp.zeros((rows, heads, length)), (k, v))
    (total, largest, weight, _), _ = lax.scan(turn, start, None, length=DEVICES)
    out = jnp.swapaxes(total / weight[..., None], 1, 2).astype(q.dtype)
    return out, (q, k, v, out, largest + jnp.log(weight))


def _backward(before: bool, saved: Parts, gradient: jax.Array) -> Parts:
    q, k, v, out, scale = saved
    inner = jnp.einsum("bqhd,bqhd->bhq", gradient.astype(jnp.float32), out.astype(jnp.float32))

    def turn(carry: Any, _: None) -> tuple[Any, None]:
        dq, dk, dv, keys = carry
        if before:
            keys, dk, dv = _passed((keys, dk, dv))
        shares = jnp.exp(_block(q, keys[0]) - scale[..., None])
        dv = dv + jnp.einsum("bhqk,bqhd->bkhd", shares.astype(q.dtype), gradient, preferred_element_type=jnp.float32)
        dshares = jnp.einsum("bqhd,bkhd->bhqk", gradient, keys[1], preferred_element_type=jnp.float32)
        dscores = (shares * (dshares - inner[..., None]) * q.shape[-1] ** -0.5).astype(q.dtype)
        dq = dq + jnp.einsum("bhqk,bkhd->bqhd", dscores, keys[0], preferred_element_type=jnp.float32)
        dk = dk + jnp.einsum("bhqk,bqhd->bkhd", dscores, q, preferred_element_type=jnp.float32)
        return (dq, dk, dv, keys) if before else (dq, *_passed((dk, dv, keys))), None

    zeros = [jnp.zeros(x.shape, jnp.float32) for x in (q, k, v)]
    (dq, dk, dv, _), _ = lax.scan(turn, (*zeros, (k, v)), None, length=DEVICES)
    return tuple(x.astype(q.dtype) for x in (dq, dk, dv))


ring_attention.defvjp(_forward, _backward)


def attention_step(before: bool, layers: int = 4, width: int = 4096, heads: int = 32, kv_heads: int = 32,
                   length: int = 32768) -> tuple[Any, tuple[Any, ...]]:
    """A train step of attention layers over a sequence sharded by eight, and the shapes of its arguments."""
    mesh = AbstractMesh((DEVICES,), ("ring",), axis_types=(AxisType.Auto,))

    def layer(x: jax.Array, weights: Any) -> jax.Array:
        q, k, v = (jnp.einsum("bsd,dhe->bshe", x, w) for w in weights[:3])
        return x + jnp.einsum("bshe,hed->bsd", ring_attention(q, k, v, before), weights[3])

    def loss(params: Any, x: jax.Array) -> jax.Array:
        x, _ = lax.scan(lambda x, w: (jax.checkpoint(layer)(x, w), None), x, params)
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def step(params: Any, x: jax.Array) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, lax.pmean(jax.grad(loss)(params, x), "ring"))

    sharded = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P(None, "ring")), out_specs=P(),
                                    check_vma=False), donate_argnums=0)

    def shaped(*shape: int, spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))

    inward, depth = shaped(layers, width, heads, width // heads, spec=P()), width // heads
    params = (inward, inward, inward, shaped(layers, heads, depth, width, spec=P()))
    return sharded, (params, shaped(1, length, width, spec=P(None, "ring")))


def pipeline_step(width: int = 8192, rows: int = 2, length: int = 2048, micro_batches: int = 16
                  ) -> tuple[Any, tuple[Any, ...]]:
    """A train step of a circular pipeline, one layer a stage, and the shapes of its arguments."""
    mesh = AbstractMesh((DEVICES,), ("ring",), axis_types=(AxisType.Auto,))

    def stage(x: jax.Array, weights: Any) -> jax.Array:
        up, down = weights
        return x + jax.nn.gelu(x @ up[0]) @ down[0]

    def loss(params: Any, batches: jax.Array) -> jax.Array:
        first = lax.axis_index("ring") == 0
        last = lax.axis_index("ring") == DEVICES - 1

        def turn(carry: Any, t: jax.Array) -> tuple[Any, None]:
            x, total = carry
            x = jnp.where(first, batches[jnp.minimum(t, micro_batches - 1)], x)
            y = jax.checkpoint(stage)(x, params)
            done = last & (t >= DEVICES - 1)
            total = total + jnp.where(done, jnp.mean(jnp.square(y.astype(jnp.float32))), 0.0)
            return (_passed(y), total), None

        start = jnp.zeros((rows, length, width), jnp.bfloat16), jnp.float32(0)
        return lax.scan(turn, start, jnp.arange(micro_batches + DEVICES - 1))[0][1]

    def step(params: Any, batches: jax.Array) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, batches))

    sharded = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P("ring"), P()), out_specs=P("ring"),
                                    check_vma=False), donate_argnums=0)

    def shaped(*shape: int, spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))

    params = (shaped(DEVICES, width, 4 * width, spec=P("ring")), shaped(DEVICES, 4 * width, width, spec=P("ring")))
    return sharded, (params, shaped(micro_batches, rows, length, width, spec=P()))


STEPS = {"attention": functools.partial(attention_step, False), "first": functools.partial(attention_step, True),
         "pipeline": pipeline_step}


def exported(name: str) -> bytes:
    """A step as a serialized ``jax.export`` for GPUs."""
    step, arguments = STEPS[name]()
    return bytes(jax.export.export(step, platforms=("cuda",))(*arguments).serialize())


def main() -> None:
    """Writes a step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=sorted(STEPS))
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    args.out.write_bytes(exported(args.name))


if __name__ == "__main__":
    main()
