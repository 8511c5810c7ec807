"""What a jitted step may hold in addition to arithmetic: each behaves as with plain jit, values and shardings alike."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.layout import Format, Layout
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite

REPLICATED, SPLIT_BATCH = P(), P(None, "data")
WIDTH = 16
WEIGHTS = 0.1 * np.ones((WIDTH, WIDTH), np.float32)
BATCHES = np.random.default_rng(0).normal(size=(4, 16, WIDTH)).astype(np.float32)
TABLE = np.random.default_rng(1).normal(size=(WIDTH, WIDTH)).astype(np.float32)


def loss(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(x @ w) ** 2)


def mesh(axes: dict[str, int], kind: AxisType = AxisType.Auto) -> jax.sharding.Mesh:
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(kind,) * len(axes))


def placed(over: jax.sharding.Mesh, w: P = REPLICATED, x: P = SPLIT_BATCH) -> tuple[jax.Array, jax.Array]:
    return jax.device_put(WEIGHTS, NamedSharding(over, w)), jax.device_put(BATCHES, NamedSharding(over, x))


def accumulated(over: jax.sharding.Mesh, w: jax.Array, xs: jax.Array, *, noisy: bool = False,
                manual: set[str] | None = None) -> jax.Array:
    """The gradient averaged in a scan over micro-batches, inside ``shard_map``."""
    def shards(w: jax.Array, xs: jax.Array) -> jax.Array:
        def body(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
            if noisy:
                jax.debug.print("{}", x.sum())
            return total + lax.pmean(jax.grad(loss)(w, x), "data"), None
        return lax.scan(body, jnp.zeros_like(w), xs)[0]
    names = {} if manual is None else {"axis_names": manual}
    return jax.shard_map(shards, mesh=over, in_specs=(P(), P(None, "data")), out_specs=P(), check_vma=False,
                         **names)(w, xs)


def same_as_jit(jitted: Any, *args: Any) -> None:
    """Plain and optimized give equal values and shardings, and something was rewritten."""
    optimized = hlorewrite.optimize(jitted, passes="comm-shift")
    assert optimized.lower(*args).report.changed
    for plain, ours in zip(jax.tree.leaves(jitted(*args)), jax.tree.leaves(optimized(*args)), strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(plain), rtol=1e-5, atol=1e-5)
        assert ours.sharding.is_equivalent_to(plain.sharding, plain.ndim)


def test_an_explicit_mesh():
    over = mesh({"data": 8}, AxisType.Explicit)
    with jax.set_mesh(over):
        def step(w: jax.Array, xs: jax.Array) -> jax.Array:
            return lax.scan(lambda a, x: (a + jax.grad(loss)(w, x), None), jnp.zeros_like(w), xs)[0]
        same_as_jit(jax.jit(step), jax.device_put(WEIGHTS, P()), jax.device_put(BATCHES, P(None, "data", None)))


def test_a_mesh_that_is_manual_along_one_axis():
    over = mesh({"data": 4, "model": 2})
    same_as_jit(jax.jit(functools.partial(accumulated, over, manual={"data"})), *placed(over, P(None, "model")))


def drawn(g: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    return g + jax.random.normal(key, g.shape), jax.random.key_data(jax.random.split(key)[0])


def printed(g: jax.Array) -> jax.Array:
    jax.debug.print("norm {}", jnp.sum(g))
    return g


def doubled_by_pallas(g: jax.Array) -> jax.Array:
    def kernel(source: Any, target: Any) -> None:
        target[...] = source[...] * 2.0
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(g.shape, g.dtype), interpret=True)(g)


def factored(g: jax.Array) -> jax.Array:
    return jnp.linalg.cholesky(g @ g.T + 100 * jnp.eye(WIDTH))


@pytest.mark.parametrize("tail", [printed, doubled_by_pallas, factored, lambda g: g + TABLE],
                         ids=["debug-print", "pallas", "foreign-function", "closed-over-constant"])
def test_what_follows_the_reduction(tail: Callable[[jax.Array], jax.Array]):
    over = mesh({"data": 8})
    same_as_jit(jax.jit(lambda w, xs: tail(accumulated(over, w, xs))), *placed(over))


def test_random_keys_and_weak_scalars():
    over = mesh({"data": 8})
    same_as_jit(jax.jit(lambda w, xs, key, scale: drawn(scale * accumulated(over, w, xs), key)), *placed(over),
                jax.random.key(0), 2.0)


def test_a_debug_print_in_the_loop(capfd: pytest.CaptureFixture[str]):
    over = mesh({"data": 8})
    same_as_jit(jax.jit(functools.partial(accumulated, over, noisy=True)), *placed(over))
    jax.effects_barrier()
    assert len(capfd.readouterr().out.split()) == 2 * 8 * len(BATCHES)  # both programs, every device and micro-batch


def test_memory_kinds_and_layouts():
    over = mesh({"data": 8})
    step = functools.partial(accumulated, over)
    same_as_jit(jax.jit(step, out_shardings=NamedSharding(over, P(), memory_kind="pinned_host")), *placed(over))
    columns_first = Format(Layout((1, 0)), NamedSharding(over, P()))
    weights, batches = placed(over)
    same_as_jit(jax.jit(step, in_shardings=(columns_first, NamedSharding(over, P(None, "data")))),
                jax.device_put(weights, columns_first), batches)
