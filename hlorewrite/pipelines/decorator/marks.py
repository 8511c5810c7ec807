"""``hlorewrite.stage``: marks where a value passes from one pipeline stage to the next; the identity everywhere else.

The mark is a primitive of JAX: linear, so its transpose marks the cotangent on its way back, from stage i to i-1. It
lowers to ``stablehlo.composite "hlorewrite.stage"`` around the identity, which XLA drops; so a step with marks runs
unsplit on any backend, and needs no context to be traced in.
"""

import operator
import os
from collections.abc import Sequence
from typing import Any, TypeVar

import jax
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
