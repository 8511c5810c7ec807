"""State of a step that is the sum of what each device along a mesh axis holds."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.sharding import NamedSharding, PartitionSpec


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PartialSum:
    """A sum that is not reduced yet: each device along a mesh axis holds its own part.

    Steps with ``partial_state`` take and return it in place of accumulated gradients. It is a pytree of one array, so
    checkpoints keep it as it is; ``jax.numpy`` functions compute with the sum.

    Attributes:
      parts: the local sums, an array with a row for each device along the axis.

    Example:
      >>> import jax.numpy as jnp
      >>> value = PartialSum(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
      >>> value.shape, value.whole().tolist(), jnp.sum(value).item()
      ((2,), [4.0, 6.0], 10.0)
    """

    parts: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the sum."""
        return self.parts.shape[1:]

    @property
    def ndim(self) -> int:
        """The rank of the sum."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.parts.dtype

    @property
    def sharding(self) -> Any:
        """The sharding of the sum: the local sums' sharding without their axis; None if they have none."""
        sharding = getattr(self.parts, "sharding", None)
        return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec[1:])) if isinstance(sharding, NamedSharding) \
            else None

    def whole(self) -> jax.Array:
        """The reduced sum, as ``jax.jit`` without ``partial_state`` returns it."""
        if isinstance(self.parts, Tracer):
            return _added(self.parts)
        return jax.jit(_added, out_shardings=self.sharding)(self.parts)

    def __jax_array__(self) -> jax.Array:
        """The sum, for functions of ``jax.numpy``."""
        return _added(self.parts)


def parts_of(value: Any, sharding: NamedSharding) -> jax.Array:
    """Local sums that add up to an array: the array itself on the first device, zeros on the others.

    Args:
      value: the array.
      sharding: the sharding of the local sums; its first dimension has a row for each device.
    """
    axis = sharding.spec[0]
    return jax.jit(_first_of, static_argnums=1, out_shardings=sharding)(value, sharding.mesh.shape[axis])


def is_partial(value: Any) -> bool:
    """Whether a value of a tree is a sum of local ones."""
    return isinstance(value, PartialSum)


def flat_with_sums(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a tree, with each sum as one leaf, and the structure of the tree with one array in place of each
    sum."""
    return jax.tree.leaves(tree, is_leaf=is_partial), jax.tree.structure(as_the_user_sees(tree))


def as_the_user_sees(tree: Any) -> Any:
    """A tree with a ``jax.ShapeDtypeStruct`` of the sum in place of each; the tree itself if it contains none."""
    return _replaced(tree, lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=each.sharding))


def whole_sums(tree: Any) -> Any:
    """A tree with each sum added up; the tree itself if it contains none."""
    return _replaced(tree, PartialSum.whole)


def _replaced(tree: Any, new: Any) -> Any:
    if not any(map(is_partial, jax.tree.leaves(tree, is_leaf=is_partial))):
        return tree
    return jax.tree.map(lambda leaf: new(leaf) if is_partial(leaf) else leaf, tree, is_leaf=is_partial)


def _added(parts: Any) -> jax.Array:
    return jnp.sum(parts, axis=0)


def _first_of(value: Any, devices: int) -> jax.Array:
    value = jnp.asarray(value)
    return jnp.zeros((devices, *value.shape), value.dtype).at[0].set(value)
