"""``check="first_call"``: runs the original and the rewritten step once on the same arguments, and compares every
output."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hlorewrite.checks.reference.rounding.bounds import RoundingBounds
from hlorewrite.checks.reference.rounding.summation_order import computed_tolerances
from hlorewrite.checks.reference.rounding.tightest_bound import bound_lines
from hlorewrite.errors import ValuesDiffer
from hlorewrite.jaxbridge.decorator.specialize import OptimizedLowered
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.execute import OutputDifference, Value, compare_output
from hlorewrite.jaxbridge.xla.own_compilations import own_compilation
from hlorewrite.jaxbridge.xla.rounding import rounding_between


def run_both(lowered: OptimizedLowered, compiled: jax.stages.Compiled, args: tuple, kwargs: dict, name: str
             ) -> tuple[Any, tuple[str, ...]]:
    """Runs the original on copies of the arguments, then the rewritten function, and compares.

    Args:
      lowered: the rewritten lowering.
      compiled: what was compiled from it.
      args: dynamic positional arguments; donated ones are consumed by the rewritten function only.
      kwargs: dynamic keyword arguments.
      name: the name of the function, for the error.

    Returns:
      The outputs of the rewritten function, and sentences that name the output closest to its rounding bound, and those
      without a known bound.

    Raises:
      ValuesDiffer: an output differs by more than rounding explains; where no bound is known, by more than the
        tolerance of the least precise type it is computed in.
    """
    copies = jax.tree.map(lambda x: x.copy() if isinstance(x, jax.Array) else x, (args, kwargs))
    with own_compilation():
        original = lowered.original.compile()
    copies = _as_before(lowered, original, copies)
    held = _global_arrays(copies)
    expected = original(*copies[0], **copies[1])
    outputs = compiled(*args, **kwargs)
    rounding = _rounding(lowered, original, held)
    compared: list[tuple[str, float | None, float | None, str]] = []
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(expected)]
    new = [leaf.sum(axis=0) if place in lowered.returned_sums else leaf
           for place, leaf in enumerate(jax.tree.leaves(outputs))]
    pairs = zip(paths, jax.tree.leaves(expected), new, strict=True)
    for position, (path, old, other) in enumerate(pairs):
        before, after = _comparable(old, other)
        if not before:
            continue
        value = Value(path, tuple(old.shape), "", "")
        error = compare_output(value, before, after, dtype=before[0].dtype, rounding=rounding, position=position)
        compared.append((path or "0", None if error.bound is None else error.abs_error, error.bound, error.reason))
        if not error.equal:
            raise ValuesDiffer(f"output {path or '0'} of {name} differs after rewriting: {_how_far(error)}",
                               hint="run the original with HLOREWRITE=0, and report this with step.lower(...).diff()")
    return outputs, tuple(bound_lines(compared))


def _as_before(lowered: OptimizedLowered, original: jax.stages.Compiled, copies: tuple) -> tuple:
    """Arguments as the original takes them, where a pass has changed how they are placed or kept."""
    leaves, tree = jax.tree.flatten(copies)
    shardings = jax.tree.leaves(original.input_shardings, is_leaf=lambda each: each is None)
    for place in lowered.placed_anew:
        whole = leaves[place].sum(axis=0) if place in lowered.local_sums else leaves[place]
        leaves[place] = jax.device_put(whole, shardings[place])
    return jax.tree.unflatten(tree, leaves)


def _comparable(old: Any, new: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What the devices of this process hold of two outputs; whole where a pass has sharded the new one."""
    before, after = _held(old), _held(new)
    if all(x.shape == y.shape for x, y in zip(before, after, strict=True)):
        return before, after
    return ([np.asarray(old)], [np.asarray(new)]) if new.is_fully_addressable else ([], [])


def _held(leaf: Any) -> list[np.ndarray]:
    """What each device of this process holds of a leaf."""
    if not isinstance(leaf, jax.Array):
        return [np.asarray(leaf)]
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return [np.asarray(shard.data) for shard in sorted(leaf.addressable_shards, key=lambda s: s.device.id)]


def _how_far(error: OutputDifference) -> str:
    """A difference and how much is allowed."""
    if error.bound is not None:
        return f"by {error.abs_error:.3g}, where rounding explains at most {error.bound:.3g}"
    return f"relative error {error.rel_error:.3g}, allowed {error.tolerance:.3g}"


def _global_arrays(copies: Any) -> list[np.ndarray] | None:
    """The arguments as global arrays, before anything donates them; None if another process holds a part."""
    arrays = []
    for leaf in jax.tree.leaves(copies):
        if isinstance(leaf, jax.Array):
            if not leaf.is_fully_addressable:
                return None
            leaf = jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
        arrays.append(np.asarray(leaf))
    return arrays


def _rounding(lowered: OptimizedLowered, original: jax.stages.Compiled, arguments: list[np.ndarray] | None
              ) -> RoundingBounds:
    """What rounding may change between the original and the rewritten module on some arguments."""
    before, after = (clone_of(private.module_of(each), "step") for each in (lowered.original, lowered))
    tolerances = computed_tolerances(before)
    if lowered.local_sums:
        return RoundingBounds(reason="state is the sum of what devices hold", tolerances=tolerances)
    if arguments is None:
        return RoundingBounds(reason="other processes hold parts of the arguments", tolerances=tolerances)
    kept = private.kept_arguments(original)
    if kept is None:
        return RoundingBounds(reason="constants of the function are arguments of its module", tolerances=tolerances)
    return rounding_between(before, after, [arguments[position] for position in kept],
                            gpu=private.platform_of(lowered) != "cpu")
