"""The loop over micro-batches, for steps that do not contain one."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from hlorewrite.errors import UsageError

Result = TypeVar("Result")


def mean_over_microbatches(function: Callable[[Any], Result], batch: Any, microbatches: int) -> Result:
    """The mean of a function over the micro-batches of a batch, one after the other in a ``lax.scan``.

    Micro-batch k takes rows k, k + m, k + 2m, ... of the batch, so a batch that is sharded by rows stays in place: each
    device has an equal part of every micro-batch.

    Args:
      function: takes a micro-batch and returns a pytree of floating-point arrays, such as ``jax.value_and_grad`` of a
        loss with its parameters bound.
      batch: a pytree of arrays of shape ``[rows, ...]``, the same number of rows in each.
      microbatches: m, a divisor of the rows.

    Returns:
      The mean of the function's results over the micro-batches, leaf by leaf.

    Raises:
      UsageError: the rows differ, m does not divide them, or a result is not floating-point.

    Example:
      >>> mean_over_microbatches(lambda rows: jnp.sum(rows), jnp.arange(6.0), 3).item()
      5.0
    """
    rows = _rows(batch)
    if microbatches < 1 or rows % microbatches:
        divisors = [m for m in range(1, rows + 1) if rows % m == 0]
        near = min(divisors, key=lambda m: (abs(m - microbatches), m), default=1)
        raise UsageError(f"{microbatches} micro-batches do not divide a batch of {rows} rows ({_shapes(batch)})",
                         hint=f"use {near} micro-batches, or another batch size")
    parts = jax.tree.map(lambda x: _cut(jnp.asarray(x), microbatches), batch)
    kinds = jax.eval_shape(function, jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), parts))
    for path, type_ in jax.tree.leaves_with_path(kinds):
        if not jnp.issubdtype(type_.dtype, jnp.inexact):
            raise UsageError(f"result{jax.tree_util.keystr(path)} is {type_.dtype}, which cannot be averaged",
                             hint="return floating-point values")

    def body(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, function(part)), None

    total, _ = lax.scan(body, jax.tree.map(lambda type_: jnp.zeros(type_.shape, type_.dtype), kinds), parts)
    return jax.tree.map(lambda x: x / microbatches, total)


def _rows(batch: Any) -> int:
    leaves = jax.tree.leaves_with_path(batch)
    if not leaves:
        raise UsageError("the batch contains no array", hint="pass a pytree of arrays, rows first")
    for path, leaf in leaves:
        if not jnp.ndim(leaf) or jnp.shape(leaf)[0] != jnp.shape(leaves[0][1])[0]:
            raise UsageError(f"batch{jax.tree_util.keystr(path)} of shape {list(jnp.shape(leaf))} has a different "
                             f"number of rows than batch{jax.tree_util.keystr(leaves[0][0])} of shape "
                             f"{list(jnp.shape(leaves[0][1]))}",
                             hint="give every array of the batch the same leading dimension")
    return jnp.shape(leaves[0][1])[0]


def _cut(x: jax.Array, microbatches: int) -> jax.Array:
    """Rows [r, ...] as micro-batches [m, r / m, ...]."""
    return jnp.swapaxes(jnp.reshape(x, (x.shape[0] // microbatches, microbatches, *x.shape[1:])), 0, 1)


def _shapes(batch: Any) -> str:
    return ", ".join(f"batch{jax.tree_util.keystr(path)} {list(jnp.shape(leaf))}"
                     for path, leaf in jax.tree.leaves_with_path(batch)[:3])
