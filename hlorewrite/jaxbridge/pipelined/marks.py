"""``hlorewrite.stage``: marks where a value passes from one pipeline stage to the next; the identity everywhere else.

The mark is a primitive of JAX: linear, so its transpose marks the cotangent on its way back, from stage i to i-1. It
lowers to ``stablehlo.composite "hlorewrite.stage"`` around the identity, which XLA drops; so a step with marks runs
unsplit on any backend, and needs no context to be traced in.
"""

from __future__ import annotations

import operator
import os
from typing import Any, TypeVar

import jax
from jax import lax
from jax.extend import source_info_util
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from hlorewrite.errors import UsageError

Tree = TypeVar("Tree")
COMPOSITE = "hlorewrite.stage"
# Locations name the user's lines, not those of jaxbridge/.
source_info_util.register_exclusion(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_mark = Primitive("hlorewrite_stage")


def stage(x: Tree, index: int) -> Tree:
    """The identity; what depends on its result belongs to pipeline stage ``index`` or a later one.

    Forwards, the value crosses from stage ``index - 1`` to stage ``index``; its cotangent crosses back. Parameters need
    no mark: they live where they are used.

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
    try:
        number = -1 if isinstance(index, bool) else operator.index(index)
    except TypeError:  # also of traced values
        number = -1
    if number < 0:
        raise UsageError(f"stage {index!r} is not a stage", hint="number stages 0, 1, 2, ... with Python integers")
    if number == 0:
        return x
    return jax.tree.map(lambda leaf: _mark.bind(leaf, stage=number, backward=False), x)


def _identity(x: jax.Array, *, stage: int, backward: bool) -> jax.Array:
    return x


def _composite(x: jax.Array, *, stage: int, backward: bool) -> jax.Array:
    return lax.composite(lambda value, **_: value, COMPOSITE)(x, stage=stage, backward=backward)


def _transpose(cotangent: Any, x: Any, *, stage: int, backward: bool) -> tuple[Any]:
    if type(cotangent) is ad.Zero:
        return (ad.Zero(x.aval),)
    return (_mark.bind(cotangent, stage=stage, backward=not backward),)


_mark.def_impl(_identity)
_mark.def_abstract_eval(_identity)
ad.deflinear2(_mark, _transpose)
batching.defvectorized(_mark)
mlir.register_lowering(_mark, mlir.lower_fun(_composite, multiple_results=False))
