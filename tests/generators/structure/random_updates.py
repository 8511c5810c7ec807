"""Random data-parallel train steps whose optimizers do what ``shard-update`` can shard, and what it cannot."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

_SHAPES: tuple[tuple[int, ...], ...] = (
    (8,), (16,), (24,), (8, 4), (4, 8), (16, 8), (8, 8), (3, 8), (8, 3), (2, 8, 3), (16, 2), (5,), (), (1, 8))
ROWS, FEATURES = 32, 3
Arrays = dict[str, Any]


def _elementwise(rng: random.Random, x: Any, other: Callable[[], Any], key: Any) -> Any:
    """What shards compute as the whole does: elementwise ops, sums over one dimension, norms."""
    dim = rng.randrange(x.ndim) if x.ndim else None
    along = partial(jnp.mean, axis=dim, keepdims=True)
    forms = (lambda: x + other(), lambda: x * 0.5 + other() * 0.25, lambda: jnp.tanh(x), lambda: jnp.sign(x) * 0.1,
             lambda: x * lax.rsqrt(jnp.sum(other() ** 2) + 1.0),
             lambda: jnp.where(jnp.sqrt(jnp.sum(x**2)) > 1.0, x * 0.1, other()),
             lambda: x - along(x), lambda: x * lax.rsqrt(along(other() ** 2) + 1),
             lambda: jnp.clip(x, -jnp.max(jnp.abs(other())) * 0.5, 0.5),
             lambda: x * lax.broadcasted_iota(jnp.int32, x.shape, dim or 0).astype(x.dtype) * 0.1 if x.ndim else x,
             lambda: jnp.broadcast_to(jnp.max(x, axis=dim, keepdims=True), x.shape) * 0.5)
    return rng.choice(forms)()


def _mixing(rng: random.Random, x: Any, other: Callable[[], Any], key: Any) -> Any:
    """What needs the whole tensor, draws random numbers, or branches."""
    dim = rng.randrange(x.ndim) if x.ndim else 0
    anywhere = (lambda: x + 0.01 * jax.random.normal(key, x.shape),
                lambda: lax.cond(jnp.sum(x) > 0, lambda: x * 0.5, lambda: x * 0.25),
                lambda: lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c) + 0.1 * x, other()))
    along = (lambda: jnp.cumsum(x, dim) * 0.1, lambda: jnp.roll(x, 1, dim), lambda: jnp.flip(x, dim),
             lambda: jnp.sort(x, dim), lambda: jnp.concatenate([x[1:], x[:1]], 0),
             lambda: x.reshape(-1)[::-1].reshape(x.shape), lambda: x.at[:1].set(other()[:1]),
             lambda: jnp.where(jnp.arange(x.shape[dim]) == jnp.argmax(x.reshape(-1)), x.swapaxes(dim, -1), 0.0)
             .swapaxes(dim, -1))
    matrices = (lambda: (x @ (x.T @ other())) * 0.01,)
    return rng.choice((*anywhere, *(along if x.ndim else ()), *(matrices if x.ndim == 2 else ())))()


def _value(rng: random.Random, leaves: Sequence[Any], depth: int, key: Any) -> Any:
    """A value computed from values of one shape."""
    if not depth:
        return rng.choice(leaves)
    other = partial(_value, rng, leaves, depth - 1, key)
    return (_elementwise if rng.random() < 0.93 else _mixing)(rng, other(), other, key)


def _gradients(params: Arrays, x: Any, manual: bool) -> Arrays:
    def loss(params: Arrays) -> Any:
        return sum(jnp.mean(jnp.sin(x[:, :1] * w + x[:, 1:2] * jnp.arange(w.size) * 0.1) * (0.5 + x[:, 2:3]))
                   for w in (p.reshape(1, -1).astype(jnp.float32) for p in params.values()))
    found = jax.grad(loss)(params)
    return jax.tree.map(lambda g: lax.pmean(g, "data"), found) if manual else found


def _accumulated(params: Arrays, x: Any, manual: bool, micro: int) -> Arrays:
    if not micro:
        return _gradients(params, x, manual)
    start = jax.tree.map(jnp.zeros_like, params)
    batches = x.reshape(micro, -1, FEATURES)
    return lax.scan(lambda sums, batch: (jax.tree.map(jnp.add, sums, _gradients(params, batch, manual)), None),
                    start, batches)[0]


def _step(seed: int, micro: int, depth: int, manual: bool) -> Callable[..., Any]:
    def step(params: Arrays, state: Arrays, count: Any, x: Any) -> Any:
        rng, key = random.Random(seed), jax.random.fold_in(jax.random.key(3), count)
        grads = _accumulated(params, x, manual, micro)
        norm = jnp.sqrt(sum(jnp.sum(g.astype(jnp.float32) ** 2) for g in grads.values()))
        clip = jnp.minimum(1, 0.1 / (norm + 1e-6)) if rng.random() < 0.5 else jnp.float32(1)
        updated, kept = {}, {}
        for name, param in params.items():
            grad, own, new = (grads[name] * clip).astype(jnp.float32), param.astype(jnp.float32), []
            for old in state[name]:
                leaves = [old, grad, grad, *([own] if rng.random() < 0.3 else []), *new]
                new.append(0.9 * old + 0.1 * _value(rng, leaves, depth, key))
            change = _value(rng, [*new, own], max(1, depth - 1), key)
            updated[name], kept[name] = (own - 0.1 * change).astype(param.dtype), tuple(new)
        return updated, kept, count + 1, norm
    return step


def random_update(rng: random.Random) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A train step, and what it is called with: parameters, state, a count, and data by device.

    Args:
      rng: decides.
    """
    shapes = {f"p{number}": rng.choice(_SHAPES) for number in range(rng.randint(1, 3))}
    states, manual = rng.randint(1, 2), rng.random() < 0.5
    dtype = rng.choice((jnp.float32, jnp.float32, jnp.bfloat16))
    sizes, names = rng.choice((((8,), ("data",)),) * 3 + (((4, 2), ("data", "model")),))
    mesh = jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(sizes))
    step = _step(rng.randrange(2**31), rng.choice((0, 0, 2)), rng.choice((1, 2, 2, 3)), manual)
    if manual:
        step = jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P(), P("data")), out_specs=P(), check_vma=False)
    numbers = np.random.default_rng(rng.randrange(2**31))

    def placed(shape: tuple[int, ...], scale: float, dtype: Any, *axes: str) -> Any:
        return jax.device_put(jnp.asarray(numbers.normal(size=shape) * scale).astype(dtype),
                              NamedSharding(mesh, P(*axes)))

    params = {name: placed(shape, 1.0, dtype) for name, shape in shapes.items()}
    state = {name: tuple(placed(shape, 0.1, jnp.float32) for _ in range(states)) for name, shape in shapes.items()}
    count = jax.device_put(jnp.int32(0), NamedSharding(mesh, P()))
    return step, (params, state, count, placed((ROWS, FEATURES), 1.0, jnp.float32, "data"))
