"""``hlorewrite.stage``: marks where a value passes from one pipeline stage to the next; the identity everywhere else.

The mark is a primitive of JAX: linear, so its transpose marks the cotangent on its way back, from stage i to i-1. It
lowers to ``stablehlo.composite "hlorewrite.stage"`` around the identity, which XLA drops; so a step with marks runs
unsplit on any backend, and needs no context to be traced in.
"""

import operator
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import source_info_util
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from hlorewrite.errors import UsageError

Tree = TypeVar("Tree")
COMPOSITE, LAYERS = "hlorewrite.stage", "hlorewrite.layers"
# Locations name the user's lines, not those of jaxbridge/.
source_info_util.register_exclusion(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _new_mark(name: str, composite: str) -> Primitive:
    """A linear primitive, the identity, whose transpose carries the note that it marks a cotangent."""
    mark = Primitive(name)

    def identity(x: jax.Array, **_: Any) -> jax.Array:
        return x

    def lowered(x: jax.Array, **said: Any) -> jax.Array:
        return lax.composite(lambda value, **_: value, composite)(x, **said)

    def transpose(cotangent: Any, x: Any, *, backward: bool, **said: Any) -> tuple[Any]:
        if type(cotangent) is ad.Zero:
            return (ad.Zero(x.aval),)
        return (mark.bind(cotangent, backward=not backward, **said),)

    mark.def_impl(identity)
    mark.def_abstract_eval(identity)
    ad.deflinear2(mark, transpose)
    batching.defvectorized(mark)
    mlir.register_lowering(mark, mlir.lower_fun(lowered, multiple_results=False))
    return mark


_mark = _new_mark("hlorewrite_stage", COMPOSITE)
_layers = _new_mark("hlorewrite_layers", LAYERS)


def stage(x: Tree, index: int) -> Tree:
    """Marks where pipeline stage ``index`` begins; returns ``x`` unchanged.

    Every op that depends on the result belongs to this stage or a later one. In the forward pass the value crosses from
    stage ``index - 1`` to stage ``index``; its cotangent crosses back. Parameters need no mark: they live where they
    are used.

    Args:
      x: a pytree of arrays of any shapes and dtypes.
      index: the stage that begins here, from 1; 0 marks nothing.

    Returns:
      The same pytree, same shapes, dtypes and shardings.

    Raises:
      UsageError: the index is not an integer of at least 0.

    Example:
      >>> import jax.numpy as jnp
      >>> def loss(w, x):
      ...     h = stage(jnp.tanh(x * w), 1)
      ...     return jnp.sum(h * w)
      >>> round(jax.grad(loss)(0.5, jnp.ones(2)).item(), 4)
      1.7107
    """
    number = _integer(index)
    if number < 0:
        raise UsageError(f"stage {index!r} is not a stage", hint="number stages 0, 1, 2, ... with Python integers")
    if number == 0:
        return x
    return jax.tree.map(lambda leaf: _mark.bind(leaf, stage=number, backward=False), x)


def stage_layers(x: Tree, stages: int | Sequence[int], first: int = 0) -> Tree:
    """Cuts the surrounding loop over layers into pipeline stages; returns ``x`` unchanged.

    Use it for layers in a ``lax.scan`` over stacked parameters ``[layers, ...]``, inside the loop over micro-batches.
    Each stage gets its rows of the parameters, of their gradients and of the optimizer's state.

    Args:
      x: the value that each layer takes from the previous one: a pytree of arrays of any shapes and dtypes.
      stages: the number of stages of equal length (the first ones are a layer longer if the layers do not divide), or
        the layers at which the second, third, ... stage begins.
      first: the stage of the first layer; if it is not 0, mark the loop's initial value with ``stage``.

    Returns:
      The same pytree, same shapes, dtypes and shardings.

    Raises:
      UsageError: there is no stage, or the layers are not increasing positive integers.

    Example:
      >>> import jax.numpy as jnp
      >>> def layer(x, w):
      ...     x = stage_layers(x, 2)                   # of four layers two on each stage
      ...     return jnp.tanh(x * w), None
      >>> round(lax.scan(layer, jnp.ones(()), jnp.ones(4))[0].item(), 4)
      0.5126
    """
    start = _integer(first)
    if isinstance(stages, Sequence):
        layers = [_integer(each) for each in stages]
        if not layers or layers != sorted(set(layers)) or layers[0] < 1:
            raise UsageError(f"stages={stages!r} are not the first layers of stages",
                             hint="pass increasing layer numbers from 1, such as (3, 6), or the number of stages")
        boundaries = ",".join(map(str, layers))
    else:
        boundaries = f"/{_integer(stages)}"
    if start < 0 or boundaries in ("/0", "/-1"):
        raise UsageError(f"stages={stages!r}, first={first!r} name no stages",
                         hint="pass a Python integer of at least 1, and first of at least 0")
    return jax.tree.map(lambda leaf: _layers.bind(leaf, boundaries=boundaries, first=start, backward=False), x)


def _integer(index: Any) -> int:
    """A Python integer of at least 0; -1 for anything else."""
    try:
        return -1 if isinstance(index, bool) else max(-1, operator.index(index))
    except TypeError:  # also of traced values
        return -1


# ---- the loop over micro-batches, for steps that do not contain one


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
