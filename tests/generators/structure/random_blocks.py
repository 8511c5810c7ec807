"""Random tensor-parallel blocks, with what ``sequence-parallel`` can compute on shards between them, and what not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

HIDDEN = 8
_SPECS = {"up": P(None, None, "model"), "down": P(None, "model", None), "scale": P(), "bias": P()}
_SHAPES = ((4, 8, 8), (8, 4, 8), (2, 8, 16), (8, 8, 4), (4, 4, 4), (6, 8, 3))
Layer = dict[str, Any]


def _on_shards(rng: random.Random, x: Any, first: Any, layer: Layer) -> Any:
    """Ops that compute each row from itself."""
    forms = (lambda: x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-3), lambda: jnp.tanh(x),
             lambda: x + 0.3 * first, lambda: x * (1 + jnp.arange(x.shape[2]) * 0.1),
             lambda: x - x.mean(-1, keepdims=True), lambda: x * layer["scale"], lambda: jnp.where(x > 0, x, 0.1 * x))
    return rng.choice(forms)()


def _across(rng: random.Random, x: Any) -> Any:
    """Ops that mix rows or need their number, random bits, loops and branches."""
    dim, rows = rng.randrange(3), x.shape[1]
    forms = (lambda: x - x.mean(dim, keepdims=True), lambda: jnp.cumsum(x, dim) * 0.2, lambda: jnp.roll(x, 1, dim),
             lambda: jnp.flip(x, dim), lambda: jax.nn.softmax(x, dim), lambda: jnp.sort(x, dim),
             lambda: x * lax.broadcasted_iota(jnp.int32, x.shape, dim).astype(x.dtype) * 0.2,
             lambda: x * jax.random.bernoulli(jax.random.key(7), 0.7, x.shape),
             lambda: x.swapaxes(0, 1).reshape(rows, *x.shape[::2]).swapaxes(0, 1),
             lambda: x.reshape(-1, x.shape[2])[::1].reshape(x.shape) * 0.9,
             lambda: x.reshape(x.shape[0], rows // 2, 2, -1).swapaxes(1, 2).reshape(x.shape),
             lambda: jnp.pad(x[:, :-1], ((0, 0), (1, 0), (0, 0))),
             lambda: x + jnp.take(x, (jnp.arange(rows) + 3) % rows, axis=1) * 0.1,
             lambda: lax.dynamic_update_slice_in_dim(x, x[:, :1] * 0.5, rng.randrange(rows), 1),
             lambda: x * jnp.max(jnp.abs(x)) * 0.2,
             lambda: lax.fori_loop(0, 2, lambda i, c: jnp.tanh(c) + 0.1 * x, x),
             lambda: lax.cond(jnp.sum(x) > 0, lambda: x * 0.5, lambda: x + 0.1),
             lambda: lax.reduce_window(x, jnp.zeros((), x.dtype), lax.add, (1, 3, 1), (1, 1, 1), "SAME") * 0.3)
    return rng.choice(forms)()


@dataclass(frozen=True)
class RandomBlocks:
    """Blocks that are written the same each time.

    Attributes:
      seed: of the ops in a block.
      depth: how many ops stand before the products.
      count: how many blocks.
      scan: whether they are a loop.
      remat: whether the backward pass computes them again.
    """

    seed: int
    depth: int
    count: int
    scan: bool
    remat: bool

    def __call__(self, layers: Layer, x: Any) -> Any:
        """Activations after all blocks."""
        block = jax.checkpoint(self._block) if self.remat else self._block
        if self.scan:
            return lax.scan(lambda x, layer: (block(x, layer), None), x, layers)[0]
        for number in range(self.count):
            x = block(x, jax.tree.map(lambda w, number=number: w[number], layers))
        return x

    def _block(self, x: Any, layer: Layer) -> Any:
        rng = random.Random(self.seed)
        hidden = jnp.tanh(self._between(rng, x, layer, self.depth) @ layer["up"])
        y = lax.psum(hidden @ layer["down"], "model")
        y = y + layer["bias"] if rng.random() < 0.3 else y
        return (x + self._between(rng, y, layer, rng.randrange(3))).astype(x.dtype)

    def _between(self, rng: random.Random, x: Any, layer: Layer, count: int) -> Any:
        first = x
        for _ in range(count):
            x = _on_shards(rng, x, first, layer) if rng.random() < 0.7 else _across(rng, x)
        return x


def random_blocks(rng: random.Random) -> tuple[Callable[[Any, Any], Any], tuple[Any, Any]]:
    """Blocks or a train step of them, and what it is called with: weights by device, and data by device.

    Args:
      rng: decides.
    """
    batch, rows, width = rng.choice(_SHAPES)
    mesh = jax.make_mesh(rng.choice(((2, 4), (4, 2))), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    blocks = RandomBlocks(rng.randrange(2**31), rng.randint(1, 3), rng.randint(1, 3), rng.random() < 0.5,
                          rng.random() < 0.3)

    def step(layers: Layer, x: Any) -> Any:
        def loss(layers: Layer) -> Any:
            return lax.pmean(jnp.mean(blocks(layers, x).astype(jnp.float32) ** 2), "data")
        value, grads = jax.value_and_grad(loss)(layers)
        return jax.tree.map(lambda w, g: (w - 0.1 * g).astype(w.dtype), layers, grads), value

    forward = rng.random() < 0.3
    run = jax.shard_map(blocks if forward else step, mesh=mesh, in_specs=(_SPECS, P("data")),
                        out_specs=P("data") if forward else (_SPECS, P()), check_vma=rng.random() < 0.5)
    numbers, dtype = np.random.default_rng(rng.randrange(2**31)), rng.choice((jnp.float32,) * 3 + (jnp.bfloat16,))

    def placed(scale: float, spec: P, *shape: int) -> Any:
        return jax.device_put(jnp.asarray(numbers.normal(size=shape) * scale).astype(dtype), NamedSharding(mesh, spec))

    shapes = {"up": (width, HIDDEN), "down": (HIDDEN, width), "scale": (width,), "bias": (width,)}
    layers = {name: placed(0.5, _SPECS[name], blocks.count, *shape) for name, shape in shapes.items()}
    return run, (layers, placed(1.0, P("data"), batch * mesh.shape["data"], rows, width))
