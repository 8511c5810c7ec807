"""Ten steps of training and inference on eight devices, small enough that XLA compiles each in seconds.

Usage: ``python bench/xla/steps.py FOLDER`` writes one serialized ``jax.export`` a step.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = np.array(jax.devices())
DATA = Mesh(DEVICES.reshape(8), ("dp",), axis_types=(AxisType.Auto,))
GRID = Mesh(DEVICES.reshape(4, 2), ("dp", "tp"), axis_types=(AxisType.Auto,) * 2)
F32, I32 = jnp.float32, jnp.int32
Step = tuple[Callable[..., Any], tuple[Any, ...]]


def given(mesh: Mesh, spec: P, *shape: int, dtype: Any = F32) -> jax.ShapeDtypeStruct:
    """An argument of a shape, sharded."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))


def manual(mesh: Mesh, ins: Any, outs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``shard_map`` over a mesh, without the check of replication."""
    return lambda f: jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)


def accumulate() -> Step:
    """Data parallel: gradients of micro-batches are averaged in a scan."""
    @manual(DATA, (P(), P(None, "dp")), P())
    def step(w, xs):
        def body(acc, x):
            g = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
            return acc + lax.pmean(g, "dp"), None
        acc, _ = lax.scan(body, jnp.zeros_like(w), xs)
        return w - 0.1 * acc
    return step, (given(DATA, P(), 16, 16), given(DATA, P(None, "dp"), 4, 32, 16))


def layers() -> Step:
    """Data parallel over a scan of layers, with Adam."""
    @manual(DATA, (P(), P(), P(), P("dp"), P()), (P(), P(), P(), P()))
    def step(w, m, v, x, t):
        def loss(w):
            h, _ = lax.scan(lambda h, w: (jax.nn.gelu(h @ w) + h, None), x, w)
            return jnp.mean(h ** 2)
        value, g = jax.value_and_grad(loss)(w)
        g = lax.pmean(g, "dp")
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        c = 1 - 0.9 ** t
        return w - 1e-3 * (m / c) / (jnp.sqrt(v) + 1e-8), m, v, lax.pmean(value, "dp")
    w = given(DATA, P(), 3, 16, 16)
    return step, (w, w, w, given(DATA, P("dp"), 16, 16), given(DATA, P()))


def attention() -> Step:
    """One block of a transformer, tensor parallel by hand, causal, with layer norm."""
    @manual(GRID, (P(None, None, "tp"), P("tp"), P(None, "tp"), P("tp"), P("dp")), (P(None, None, "tp"), P("tp"), P()))
    def step(qkv, out, up, down, x):
        def norm(x):
            return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

        def loss(qkv, out):
            h = norm(x)
            q, k, v = (jnp.einsum("bse,ehd->bhsd", h, w.reshape(16, 1, 8)) for w in qkv)
            a = jnp.einsum("bhsd,bhtd->bhst", q, k) / np.sqrt(8)
            a = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((8, 8), bool)), a, -1e9))
            o = jnp.einsum("bhst,bhtd->bshd", a, v).reshape(x.shape[0], 8, 8)
            y = x + lax.psum(o @ out, "tp")
            y = y + lax.psum(jax.nn.silu(norm(y) @ up) @ down, "tp")
            return jnp.mean(y ** 2)
        value, grads = jax.value_and_grad(loss, (0, 1))(qkv, out)
        a, b = (lax.pmean(g, "dp") for g in grads)
        return qkv - 0.1 * a, out - 0.1 * b, lax.pmean(value, ("dp", "tp"))
    return step, (given(GRID, P(None, None, "tp"), 3, 16, 16), given(GRID, P("tp"), 16, 16),
                  given(GRID, P(None, "tp"), 16, 32), given(GRID, P("tp"), 32, 16), given(GRID, P("dp"), 8, 8, 16))


def fsdp() -> Step:
    """Auto-sharded: parameters sharded over all data-parallel devices, two layers, momentum."""
    def step(w1, w2, m1, x):
        def loss(w1, w2):
            return jnp.mean((jax.nn.relu(x @ w1) @ w2) ** 2)
        g1, g2 = jax.grad(loss, (0, 1))(w1, w2)
        m1 = 0.9 * m1 + g1
        return w1 - 0.1 * m1, w2 - 0.1 * g2, m1
    return step, (given(DATA, P("dp"), 16, 32), given(DATA, P("dp"), 32, 16), given(DATA, P("dp"), 16, 32),
                  given(DATA, P("dp"), 32, 16))


def embedding() -> Step:
    """A table of tokens, cross entropy, and the scattered gradient; data parallel."""
    @manual(DATA, (P(), P(), P("dp"), P("dp")), (P(), P()))
    def step(table, w, tokens, labels):
        def loss(table):
            logits = jnp.take(table, tokens, axis=0) @ w
            picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
            return -jnp.mean(picked)
        value, g = jax.value_and_grad(loss)(table)
        return table - 0.1 * lax.pmean(g, "dp"), lax.pmean(value, "dp")
    return step, (given(DATA, P(), 32, 16), given(DATA, P(), 16, 32), given(DATA, P("dp"), 16, 4, dtype=I32),
                  given(DATA, P("dp"), 16, 4, dtype=I32))


def experts() -> Step:
    """A mixture of experts: top-2 routing, tokens exchanged between devices and back."""
    @manual(DATA, (P(), P("dp"), P("dp")), P("dp"))
    def step(router, w, x):
        gates, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
        mask = jax.nn.one_hot(chosen, 8).sum(1)
        sent = jnp.einsum("te,td->etd", mask, x)
        there = lax.all_to_all(sent, "dp", 0, 0, tiled=True)
        done = jnp.tanh(there.reshape(-1, 16) @ w[0]).reshape(8, -1, 16)
        back = lax.all_to_all(done, "dp", 0, 0, tiled=True)
        weight = (jax.nn.one_hot(chosen, 8) * gates[..., None]).sum(1)
        return jnp.einsum("te,etd->td", weight, back)
    return step, (given(DATA, P(), 16, 8), given(DATA, P("dp"), 8, 16, 16), given(DATA, P("dp"), 32, 16))


def convolution() -> Step:
    """A small convolutional net with max pooling and batch statistics over all devices."""
    @manual(DATA, (P(), P(), P("dp")), (P(), P()))
    def step(k, w, x):
        def loss(k, w):
            y = lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            mean = lax.pmean(y.mean((0, 1, 2)), "dp")
            y = jax.nn.relu(y - mean)
            y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            return jnp.mean((y.reshape(y.shape[0], -1) @ w) ** 2)
        a, b = jax.grad(loss, (0, 1))(k, w)
        return k - 0.1 * lax.pmean(a, "dp"), w - 0.1 * lax.pmean(b, "dp")
    return step, (given(DATA, P(), 3, 3, 4, 4), given(DATA, P(), 64, 8), given(DATA, P("dp"), 16, 8, 8, 4))


def ring() -> Step:
    """Attention over a ring: keys and values go from device to device."""
    @manual(DATA, (P("dp"), P("dp"), P("dp")), P("dp"))
    def step(q, k, v):
        def body(i, state):
            k, v, top, low, best = state
            s = q @ k.T
            high = jnp.maximum(best, s.max(-1, keepdims=True))
            e, scale = jnp.exp(s - high), jnp.exp(best - high)
            k, v = (lax.ppermute(a, "dp", [(d, (d + 1) % 8) for d in range(8)]) for a in (k, v))
            return k, v, top * scale + e @ v, low * scale + e.sum(-1, keepdims=True), high
        n = q.shape[0]
        state = (k, v, jnp.zeros_like(q), jnp.zeros((n, 1)), jnp.full((n, 1), -jnp.inf))
        _, _, top, low, _ = lax.fori_loop(0, 8, body, state)
        return top / low
    return step, (given(DATA, P("dp"), 32, 8),) * 3


def decode() -> Step:
    """One token with a cache of keys: rows are written at a position, and the best tokens sorted."""
    @manual(GRID, (P("dp"), P("dp"), P(), P()), (P("dp"), P("dp"), P("dp")))
    def step(cache, x, w, at):
        cache = lax.dynamic_update_slice(cache, (x @ w)[:, None], (0, at, 0))
        seen = jnp.arange(cache.shape[1])[None] <= at
        score = jnp.where(seen, jnp.einsum("bd,btd->bt", x, cache), -1e9)
        mixed = jnp.einsum("bt,btd->bd", jax.nn.softmax(score), cache)
        order = jnp.argsort(mixed, axis=-1)
        return cache, order, jnp.roll(jnp.take_along_axis(mixed, order, -1), at % 8, -1)
    return step, (given(GRID, P("dp"), 8, 16, 8), given(GRID, P("dp"), 8, 8), given(GRID, P(), 8, 8),
                  given(GRID, P(), dtype=I32))


def recurrent() -> Step:
    """A gated recurrent cell over time with dropout, in bfloat16, gradients clipped by their norm."""
    @manual(DATA, (P(), P("dp"), P()), (P(), P()))
    def step(w, x, key):
        def loss(w):
            def cell(h, x):
                z = jnp.concatenate([h, x], -1) @ w.astype(jnp.bfloat16)
                a, b = jnp.split(z, 2, -1)
                return h * jax.nn.sigmoid(a) + jnp.tanh(b), h
            h = jnp.zeros((x.shape[0], 8), jnp.bfloat16)
            h, hs = lax.scan(cell, h, jnp.swapaxes(x, 0, 1).astype(jnp.bfloat16))
            keep = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, h.shape)
            return jnp.mean(jnp.where(keep, h.astype(F32) / 0.9, 0) ** 2) + jnp.mean(hs.astype(F32) ** 2)
        value, g = jax.value_and_grad(loss)(w)
        g = lax.pmean(g, "dp")
        norm = jnp.sqrt(jnp.sum(g ** 2))
        return w - 0.1 * g / jnp.maximum(norm, 1.0), lax.pmean(value, "dp")
    return step, (given(DATA, P(), 16, 16), given(DATA, P("dp"), 16, 4, 8), given(DATA, P(), 2, dtype=jnp.uint32))


STEPS: tuple[Callable[[], Step], ...] = (accumulate, layers, attention, fsdp, embedding, experts, convolution, ring,
                                         decode, recurrent)


def write(folder: Path) -> None:
    """Writes each step as a serialized export."""
    folder.mkdir(parents=True, exist_ok=True)
    for make in STEPS:
        function, arguments = make()
        exported = export.export(jax.jit(function), platforms=["cuda"])(*arguments)
        (folder / f"{make.__name__}.export").write_bytes(exported.serialize())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
