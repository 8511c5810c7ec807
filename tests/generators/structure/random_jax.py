"""Random JAX steps on a mesh of four times two devices: collectives of every kind in nests of scan, while, cond,
switch, vmap, remat, custom derivatives and gradients, with keys and axis indices."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

Fn = Callable[[Any, Any], Any]
_AXES = ("d", "m", ("d", "m"))
ROWS, SIZE = 4, 8


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def summed_gradient(x: Any, axis: str) -> Any:
    """The identity, whose gradient is summed over an axis."""
    return x


summed_gradient.defvjp(lambda x, axis: (x, None), lambda axis, _, g: (lax.psum(g, axis),))


class JaxStepWriter:
    """Composes functions of a local vector and local weights.

    Args:
      rng: decides.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def function(self, depth: int) -> Fn:
        """A function from a vector and weights to a vector."""
        parts = [self._part(depth) for _ in range(self.rng.randint(1, 3))]

        def run(x: Any, w: Any) -> Any:
            for part in parts:
                x = part(x, w)
            return x
        return run

    def _part(self, depth: int) -> Fn:
        simple = [self._reduce, self._reduce, self._mean, self._pointwise, self._pointwise, self._scatter,
                  self._gather, self._permute, self._exchange, self._masked, self._random, self._extremum,
                  self._identity]
        nested = [self._scan, self._scan, self._while, self._cond, self._switch, self._vmap, self._remat,
                  self._grad, self._grad]
        return self.rng.choice(nested if depth and self.rng.random() < 0.6 else simple)(depth)

    def axis(self) -> Any:
        """One axis or both."""
        return self.rng.choice(_AXES)

    def _reduce(self, _: int) -> Fn:
        axis, scale = self.axis(), self.rng.choice((0.1, 0.25))
        return lambda x, w: lax.psum(x * scale, axis)

    def _mean(self, _: int) -> Fn:
        axis = self.axis()
        return lambda x, w: x + lax.pmean(jnp.sin(x), axis)

    def _pointwise(self, _: int) -> Fn:
        return self.rng.choice((lambda x, w: jnp.tanh(x), lambda x, w: jnp.tanh(w @ x),
                                lambda x, w: x * 0.5 + w[0], lambda x, w: -x,
                                lambda x, w: jnp.where(x > 0, x, 0.1 * x), lambda x, w: (w.T @ (w @ x)) * 0.05))

    def _scatter(self, _: int) -> Fn:
        axis = self.rng.choice(("d", "m"))

        def run(x: Any, w: Any) -> Any:
            return lax.all_gather(lax.psum_scatter(x, axis, tiled=True) * 0.3, axis, tiled=True)
        return run

    def _gather(self, _: int) -> Fn:
        axis, at = self.rng.choice(("d", "m")), self.rng.randrange(2)
        if self.rng.random() < 0.5:
            return lambda x, w: lax.all_gather(x, axis)[at]
        return lambda x, w: x + lax.all_gather(x, axis)[lax.axis_index(axis)]

    def _permute(self, _: int) -> Fn:
        axis = self.rng.choice(("d", "m"))
        size = 4 if axis == "d" else 2
        targets = self.rng.sample(range(size), self.rng.randint(0, size))
        pairs = list(zip(self.rng.sample(range(size), len(targets)), targets, strict=True))
        return lambda x, w: x + lax.ppermute(x, axis, pairs)

    def _exchange(self, _: int) -> Fn:
        axis = self.rng.choice(("d", "m"))
        return lambda x, w: lax.all_to_all(x.reshape(4 if axis == "d" else 2, -1), axis, 0, 0).reshape(x.shape)

    def _masked(self, _: int) -> Fn:
        axis, at = self.rng.choice(("d", "m")), self.rng.randrange(2)
        return lambda x, w: x + lax.psum(jnp.where(lax.axis_index(axis) == at, x, 0), axis)

    def _random(self, _: int) -> Fn:
        seed, own = self.rng.randrange(9), self.rng.random() < 0.5

        def run(x: Any, w: Any) -> Any:
            key = jax.random.key(seed)
            if own:
                key = jax.random.fold_in(key, lax.axis_index("d"))
            return jnp.where(jax.random.bernoulli(key, 0.7, x.shape), x, 0.0)
        return run

    def _extremum(self, _: int) -> Fn:
        axis, what = self.axis(), self.rng.choice((lax.pmax, lax.pmin))
        return lambda x, w: x - 0.5 * lax.stop_gradient(what(lax.stop_gradient(x), axis))

    def _identity(self, _: int) -> Fn:
        axis = self.rng.choice(("d", "m"))
        return lambda x, w: summed_gradient(x, axis)

    # ---- with functions inside

    def _scan(self, depth: int) -> Fn:
        inner, how = self.function(depth - 1), self.rng.randrange(4)
        axis, trips = self.axis(), self.rng.randint(1, 4)

        def run(x: Any, w: Any) -> Any:
            if how == 0:
                def body(carry: Any, each: Any) -> Any:
                    return carry + lax.psum(inner(each * x, w), axis) * 0.2, None
                return lax.scan(body, jnp.zeros_like(x), jnp.arange(1.0, trips + 1))[0]
            if how == 1:
                ys = lax.scan(lambda c, i: (c, inner(c * i, w)), x, jnp.arange(1.0, trips + 1))[1]
                return jnp.tanh(lax.psum(ys, axis)).sum(0)
            if how == 2:
                a, b = lax.scan(lambda c, i: ((c[1], inner(c[0], w) * 0.5), None), (x, x * 0.3), None, length=trips)[0]
                return a + b
            return lax.fori_loop(0, trips, lambda i, c: c + 0.1 * inner(c * (i + 1), w), x)
        return run

    def _while(self, depth: int) -> Fn:
        inner, limit = self.function(depth - 1), self.rng.choice((0.5, 3.0, 40.0))

        def run(x: Any, w: Any) -> Any:
            def more(state: Any) -> Any:
                return (state[0] < 4) & (state[1] < limit)

            def body(state: Any) -> Any:
                value = jnp.tanh(inner(state[2], w))
                return state[0] + 1, lax.psum(jnp.sum(value * value), ("d", "m")), value
            return lax.while_loop(more, body, (0, jnp.float32(0), x))[2]
        return lambda x, w: lax.stop_gradient(run(lax.stop_gradient(x), lax.stop_gradient(w))) + x

    def _cond(self, depth: int) -> Fn:
        one, other, axis = self.function(depth - 1), self.function(depth - 1), ("d", "m")
        return lambda x, w: lax.cond(lax.psum(jnp.sum(x), axis) > 0, one, other, x, w)

    def _switch(self, depth: int) -> Fn:
        branches, number = [self.function(depth - 1) for _ in range(3)], self.rng.randint(-1, 4)

        def run(x: Any, w: Any) -> Any:
            def body(carry: Any, i: Any) -> Any:
                return lax.switch((i + number) % 3, branches, carry, w), None
            return lax.scan(body, x, jnp.arange(3))[0]
        return run

    def _vmap(self, depth: int) -> Fn:
        inner = self.function(depth - 1)
        return lambda x, w: jax.vmap(inner, (0, None))(jnp.stack([x, -x]), w).mean(0)

    def _remat(self, depth: int) -> Fn:
        return jax.checkpoint(self.function(depth - 1))

    def _grad(self, depth: int) -> Fn:
        inner, axis = self.function(depth - 1), self.axis()

        def run(x: Any, w: Any) -> Any:
            by_x, by_w = jax.grad(lambda x, w: jnp.sum(jnp.sin(inner(x, w))), (0, 1))(x, w)
            return lax.pmean(by_x, axis) * 0.1 + jnp.tanh(lax.psum(by_w, axis)).sum(0) * 0.1
        return run


def random_step(rng: random.Random, writer: Callable[[random.Random], JaxStepWriter] = JaxStepWriter
                ) -> tuple[Callable[[Any, Any, Any], Any], tuple[Any, Any, Any]]:
    """A step, and what it is called with: data by device, weights, and how many micro-batches there are.

    Args:
      rng: decides.
      writer: what composes the functions of a step.
    """
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("d", "m"))
    inner = writer(rng).function(2)
    axis, dynamic = rng.choice(_AXES), rng.random() < 0.3

    def local(xs: Any, w: Any, trips: Any) -> Any:
        def body(i: Any, total: Any) -> Any:
            return total + lax.psum(inner(xs[0, i % ROWS], w), axis)
        total = lax.fori_loop(0, trips if dynamic else ROWS, body, jnp.zeros(SIZE))
        return total, inner(xs[0, 0], w)[None]

    step = jax.shard_map(local, mesh=mesh, in_specs=(P(("d", "m")), P(), P()),
                         out_specs=(P(), P(("d", "m"))), check_vma=False)
    numbers = np.random.default_rng(rng.randrange(2**31))
    data = numbers.standard_normal((8, ROWS, SIZE)).astype(np.float32)
    weights = numbers.standard_normal((SIZE, SIZE)).astype(np.float32) * 0.3
    return step, (data, weights, np.int32(3))
