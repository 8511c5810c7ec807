"""Accumulation loops as people write them, for measuring where their reductions end up.

Each case is a function of (weights, micro-batches) inside ``shard_map``; ``sinks`` says whether its gradient reductions
may leave the loop. ``bytes_once`` is one reduction of each gradient, in the accumulator's type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec as P

MICRO_BATCHES = 8
WIDTH = 256
LAYERS = 3
SQUARE = 4 * WIDTH * WIDTH
SMALL = 1024
"""Reductions of fewer bytes are metrics and counts, not gradients."""

REPLICATED = P()
SPLIT_BATCH = (REPLICATED, P(None, "data"))
DATA = (("data", 8),)
DATA_MODEL = (("data", 4), ("model", 2))


@dataclass(frozen=True)
class AccumulationCase:
    """One accumulation loop.

    Attributes:
      name: what it is.
      step: the function of one device's shards.
      sinks: whether its gradient reductions may leave the loop.
      bytes_once: executed bytes of one reduction of each gradient, on one device.
      mesh: axes and sizes.
      in_specs: shardings of weights and micro-batches.
      out_specs: shardings of the results.
      taken: share of iterations in which a branch that reduces is taken.
      wire_dtype: element type asked of comm-shift for the wire.
      lossy: values are compared as bf16.
    """

    name: str
    step: Callable[..., Any]
    sinks: bool = True
    bytes_once: int = SQUARE
    mesh: tuple[tuple[str, int], ...] = DATA
    in_specs: tuple[Any, ...] = SPLIT_BATCH
    out_specs: Any = REPLICATED
    taken: float = 1.0
    wire_dtype: str | None = None
    lossy: bool = False


def gradient(w: jax.Array, x: jax.Array) -> jax.Array:
    """The gradient of a small loss; not linear in anything."""
    return jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w)


def scan(body: Callable[[Any, jax.Array], Any], init: Any, xs: jax.Array) -> Any:
    """The carry of a scan without outputs."""
    return lax.scan(lambda carry, x: (body(carry, x), None), init, xs)[0]


def counted(body: Callable[[jax.Array, Any, jax.Array], Any], init: Any, xs: jax.Array) -> Any:
    """A scan whose body also gets the number of the micro-batch."""
    return scan(lambda carry, x: (carry[0] + 1, body(carry[0], carry[1], x)), (jnp.int32(0), init), xs)[1]


def zeros(w: jax.Array) -> jax.Array:
    """An accumulator."""
    return jnp.zeros_like(w)


def psum(x: Any) -> Any:
    """Sum over the data axis."""
    return lax.psum(x, "data")


def pmean(x: Any) -> Any:
    """Mean over the data axis."""
    return lax.pmean(x, "data")


def nested(w: jax.Array, xs: jax.Array) -> jax.Array:
    """Micro-batches × scanned layers; the mean is taken inside the layer scan."""
    stack = jnp.stack([w, 0.5 * w, 0.25 * w])

    def micro_batch(total: jax.Array, x: jax.Array) -> jax.Array:
        def layer(h: jax.Array, wl: jax.Array) -> tuple[jax.Array, jax.Array]:
            return jnp.tanh(h @ wl), pmean(gradient(wl, h))
        return total + lax.scan(layer, x, stack)[1]
    return scan(micro_batch, jnp.zeros_like(stack), xs)


def backward_scan(w: jax.Array, xs: jax.Array) -> jax.Array:
    """The gradient of a scan over layers, averaged after the backward scan, in a loop over micro-batches."""
    stack = jnp.stack([w, 0.5 * w, 0.25 * w])

    def loss(stack: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(lax.scan(lambda h, wl: (jnp.tanh(h @ wl), None), x, stack)[0] ** 2)
    return scan(lambda total, x: total + pmean(jax.grad(loss)(stack, x)), jnp.zeros_like(stack), xs)


def ravelled(w: jax.Array, xs: jax.Array) -> Any:
    """Gradients flattened into one vector for the reduction."""
    def body(total: Any, x: jax.Array) -> Any:
        flat, restore = ravel_pytree({"w": gradient(w, x), "b": jnp.sum(x, 0)})
        return jax.tree.map(jnp.add, total, restore(pmean(flat)))
    return scan(body, {"w": zeros(w), "b": jnp.zeros(w.shape[0])}, xs)


def embedding(w: jax.Array, xs: jax.Array) -> jax.Array:
    """Scatter-add into an embedding gradient."""
    def body(total: jax.Array, x: jax.Array) -> jax.Array:
        tokens = jnp.abs(x[:, 0] * 100).astype(jnp.int32) % w.shape[0]
        return total + psum(zeros(w).at[tokens].add(x))
    return scan(body, zeros(w), xs)


def multi_steps(w: jax.Array, xs: jax.Array) -> jax.Array:
    """optax.MultiSteps by hand: the update reads the accumulator in one branch."""
    def body(i: jax.Array, state: Any, x: jax.Array) -> Any:
        total, p = state
        total = total + pmean(gradient(w, x))
        return lax.cond(i % 4 == 3, lambda t, p: (zeros(t), p - jnp.tanh(t)), lambda t, p: (t, p), total, p)
    return counted(body, (zeros(w), w), xs)[1]


def loss_scaled(w: jax.Array, xs: jax.Array) -> jax.Array:
    """Loss scaling and a token count that is itself reduced."""
    def body(total: jax.Array, x: jax.Array) -> jax.Array:
        tokens = psum(jnp.sum(x > 0).astype(jnp.float32))
        return total + psum(1024.0 * gradient(w, x)) / tokens / 1024.0
    return scan(body, zeros(w), xs)


def unrolled(w: jax.Array, xs: jax.Array) -> jax.Array:
    """A Python loop."""
    total = zeros(w)
    for i in range(MICRO_BATCHES):
        total = total + pmean(gradient(w, xs[i]))
    return w - 0.1 * total


def narrow_wire(w: jax.Array, xs: jax.Array) -> jax.Array:
    """Gradients reduced in bf16, accumulated in float32. XLA reduces the float32 sum in bf16; comm-shift does not."""
    return scan(lambda a, x: a + psum(gradient(w, x).astype(jnp.bfloat16)).astype(jnp.float32), zeros(w), xs)


def dynamic_trips(w: jax.Array, xs: jax.Array) -> jax.Array:
    """A loop whose bound is computed."""
    bound = (jnp.sum(w > -100) * 0 + MICRO_BATCHES).astype(jnp.int32)
    return lax.while_loop(lambda c: c[0] < bound, lambda c: (c[0] + 1, c[1] + pmean(gradient(w, xs[c[0]]))),
                          (jnp.int32(0), zeros(w)))[1]


def with_metrics(w: jax.Array, xs: jax.Array) -> Any:
    """A loss averaged and stacked next to the gradient."""
    return lax.scan(lambda total, x: (total + pmean(gradient(w, x)), pmean(jnp.sum(x @ w))), zeros(w), xs)


def clipped(w: jax.Array, xs: jax.Array) -> jax.Array:
    """Clipping each micro-batch's averaged gradient needs it reduced."""
    def body(total: jax.Array, x: jax.Array) -> jax.Array:
        g = pmean(gradient(w, x))
        return total + g / jnp.maximum(1.0, jnp.sqrt(jnp.sum(g * g)))
    return scan(body, zeros(w), xs)


def clipped_at_update(w: jax.Array, xs: jax.Array) -> jax.Array:
    """Clipping the sum needs it reduced once."""
    total = scan(lambda a, x: a + pmean(gradient(w, x)), zeros(w), xs)
    return w - total / jnp.maximum(1.0, jnp.sqrt(jnp.sum(total * total)))


def condition_reads(w: jax.Array, xs: jax.Array) -> jax.Array:
    """The loop goes on while the accumulator is small."""
    return lax.while_loop(lambda c: (jnp.sum(c[1]) < 1e9) & (c[0] < MICRO_BATCHES),
                          lambda c: (c[0] + 1, c[1] + psum(gradient(w, xs[c[0]]))), (jnp.int32(0), zeros(w)))[1]


def scattered_buffer(w: jax.Array, xs: jax.Array) -> jax.Array:
    """The reduction takes the accumulator itself: ``buffer = psum(buffer.at[i].add(u))``."""
    return counted(lambda i, b, x: psum(b.at[i].add(jnp.sum(x, 0))), jnp.zeros((MICRO_BATCHES, w.shape[0])), xs)


CASES: tuple[AccumulationCase, ...] = (
    AccumulationCase("acc + psum(g)", lambda w, xs: scan(lambda a, x: a + psum(gradient(w, x)), zeros(w), xs)),
    AccumulationCase("acc + pmean(g)", lambda w, xs: scan(lambda a, x: a + pmean(gradient(w, x)), zeros(w), xs)),
    AccumulationCase("acc + psum(g) / m", lambda w, xs: scan(
        lambda a, x: a + psum(gradient(w, x)) / MICRO_BATCHES, zeros(w), xs)),
    AccumulationCase("acc started at w", lambda w, xs: scan(lambda a, x: a + pmean(gradient(w, x)), w, xs)),
    AccumulationCase("acc - psum(g)", lambda w, xs: scan(lambda a, x: a - psum(gradient(w, x)), zeros(w), xs)),
    AccumulationCase("two psums, one acc", lambda w, xs: scan(
        lambda a, x: a + psum(gradient(w, x)) + psum(gradient(w, 2 * x)), zeros(w), xs)),
    AccumulationCase("bf16 psum, f32 acc", narrow_wire, lossy=True),
    AccumulationCase("bf16 psum, f32 acc, wire-dtype=bf16", narrow_wire, bytes_once=SQUARE // 2, wire_dtype="bf16",
                     lossy=True),
    AccumulationCase("transposed and reshaped", lambda w, xs: scan(
        lambda a, x: a + pmean(gradient(w, x)).T.reshape(-1), jnp.zeros(w.size), xs)),
    AccumulationCase("fori_loop", lambda w, xs: lax.fori_loop(
        0, MICRO_BATCHES, lambda i, a: a + pmean(gradient(w, xs[i])), zeros(w))),
    AccumulationCase("computed trip count", dynamic_trips),
    AccumulationCase("unrolled", unrolled),
    AccumulationCase("running mean", lambda w, xs: counted(
        lambda i, m, x: m + (pmean(gradient(w, x)) - m) / (i + 1), zeros(w), xs)),
    AccumulationCase("EMA", lambda w, xs: scan(lambda a, x: 0.9 * a + 0.1 * pmean(gradient(w, x)), zeros(w), xs)),
    AccumulationCase("momentum started at w", lambda w, xs: scan(lambda a, x: 0.9 * a + pmean(gradient(w, x)), w, xs)),
    AccumulationCase("where(flag, acc + g, acc)", lambda w, xs: counted(
        lambda i, a, x: jnp.where(i % 2 == 0, a + psum(gradient(w, x)), a), zeros(w), xs)),
    AccumulationCase("cond(flag, acc + g, acc)", lambda w, xs: counted(
        lambda i, a, x: lax.cond(i % 2 == 0, lambda a: a + psum(gradient(w, x)), lambda a: a, a), zeros(w), xs)),
    AccumulationCase("layers × micro-batches", nested, bytes_once=LAYERS * SQUARE),
    AccumulationCase("backward layer scan × micro-batches", backward_scan, bytes_once=LAYERS * SQUARE),
    AccumulationCase("ravel_pytree", ravelled, bytes_once=SQUARE + 4 * WIDTH),
    AccumulationCase("embedding scatter-add", embedding),
    AccumulationCase("loss scaling, reduced token count", loss_scaled),
    AccumulationCase("loss metric as well", with_metrics),
    AccumulationCase("clipped at the update", clipped_at_update),
    AccumulationCase("MultiSteps, two updates", multi_steps, bytes_once=2 * SQUARE, taken=0.25),
    AccumulationCase("max of pmax", lambda w, xs: scan(
        lambda a, x: jnp.maximum(a, lax.pmax(gradient(w, x), "data")), jnp.full_like(w, -jnp.inf), xs)),
    AccumulationCase("data × model mesh", lambda w, xs: scan(lambda a, x: a + pmean(gradient(w, x)), zeros(w), xs),
                     bytes_once=SQUARE // 2, mesh=DATA_MODEL, in_specs=(P(None, "model"), P(None, "data")),
                     out_specs=P(None, "model")),
    AccumulationCase("clipped per micro-batch", clipped, sinks=False, bytes_once=MICRO_BATCHES * SQUARE),
    AccumulationCase("max of psum", lambda w, xs: scan(lambda a, x: jnp.maximum(a, psum(gradient(w, x))), zeros(w), xs),
                     sinks=False, bytes_once=MICRO_BATCHES * SQUARE),
    AccumulationCase("update inside the loop", lambda w, xs: scan(lambda p, x: p - 0.1 * pmean(gradient(p, x)), w, xs),
                     sinks=False, bytes_once=MICRO_BATCHES * SQUARE),
    AccumulationCase("condition reads acc", condition_reads, sinks=False, bytes_once=MICRO_BATCHES * SQUARE),
    AccumulationCase("select differs between devices", lambda w, xs: scan(
        lambda a, x: a + jnp.where(lax.axis_index("data") > 0, 0, psum(gradient(w, x))), zeros(w), xs),
        sinks=False, bytes_once=MICRO_BATCHES * SQUARE, out_specs=P("data")),
    AccumulationCase("psum of the scattered buffer", scattered_buffer, sinks=False,
                     bytes_once=MICRO_BATCHES * MICRO_BATCHES * WIDTH * 4),
)
