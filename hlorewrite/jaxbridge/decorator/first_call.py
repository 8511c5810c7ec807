"""``check="first_call"``: original and rewritten run once on the same arguments, and every output is compared."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hlorewrite.errors import ValuesDiffer
from hlorewrite.jaxbridge.decorator.lowered import OptimizedLowered
from hlorewrite.jaxbridge.xla.execute import Value
from hlorewrite.jaxbridge.xla.own_compilations import own_compilation
from hlorewrite.jaxbridge.xla.verify import compare_output


def run_both(lowered: OptimizedLowered, compiled: jax.stages.Compiled, args: tuple, kwargs: dict, name: str) -> Any:
    """Runs the original on copies of the arguments, then the rewritten function, and compares.

    Args:
      lowered: the rewritten lowering.
      compiled: what was compiled from it.
      args: dynamic positional arguments; donated ones are consumed by the rewritten function only.
      kwargs: dynamic keyword arguments.
      name: of the function, for the error.

    Returns:
      The outputs of the rewritten function.

    Raises:
      ValuesDiffer: an output differs by more than its dtype's tolerance.
    """
    copies = jax.tree.map(lambda x: x.copy() if isinstance(x, jax.Array) else x, (args, kwargs))
    with own_compilation():
        original = lowered.original.compile()
    expected = original(*copies[0], **copies[1])
    outputs = compiled(*args, **kwargs)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(expected)]
    for path, old, new in zip(paths, jax.tree.leaves(expected), jax.tree.leaves(outputs), strict=True):
        before, after = _held(old), _held(new)
        if not before:
            continue
        value = Value(path, tuple(old.shape), "", "")
        error = compare_output(value, before, after, dtype=before[0].dtype)
        if not error.equal:
            raise ValuesDiffer(f"output {path or '0'} of {name} differs after rewriting: relative error "
                               f"{error.rel_error:.3g}, allowed {error.tolerance:.3g}",
                               hint="run the original with HLOREWRITE=0, and report this with step.lower(...).diff()")
    return outputs


def _held(leaf: Any) -> list[np.ndarray]:
    """What each device of this process holds of a leaf."""
    if not isinstance(leaf, jax.Array):
        return [np.asarray(leaf)]
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return [np.asarray(shard.data) for shard in sorted(leaf.addressable_shards, key=lambda s: s.device.id)]
