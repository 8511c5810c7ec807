"""An array whose rows are distributed over stages and cannot be the shards of one ``jax.Array``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class StageArray:
    """One stack of layers whose rows are on the meshes of several stages, in parts of any sizes.

    The shards of a ``jax.Array`` all have one size, and a device has one of them. So ``hlorewrite.pipeline`` uses this
    type for a stack if stages have different numbers of layers, if their meshes differ in size, or if a mesh has
    several stages. The step takes it back without a copy. ``numpy.asarray``, ``jax.numpy.asarray`` and arithmetic with
    arrays convert it to one array; ``jax.jit`` does not accept it.

    Args:
      parts: the rows of each stage, in their order: arrays of one dtype whose shapes differ in the first dimension.

    Example:
      >>> stack = StageArray([jnp.ones((3, 2)), jnp.zeros((1, 2))])
      >>> stack.shape, stack.edges, float(jnp.asarray(stack).sum())
      ((4, 2), (0, 3, 4), 6.0)
    """

    def __init__(self, parts: Sequence[jax.Array]) -> None:
        self.parts = tuple(parts)
        self.edges = tuple(sum(each.shape[0] for each in self.parts[:place]) for place in range(len(self.parts) + 1))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all parts together."""
        return (self.edges[-1], *self.parts[0].shape[1:])

    @property
    def dtype(self) -> Any:
        """The dtype of all parts."""
        return self.parts[0].dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return sum(each.size for each in self.parts)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return sum(each.nbytes for each in self.parts)

    @property
    def addressable_shards(self) -> list[Any]:
        """The shards of all parts that this process has; their indices count within a part."""
        return [shard for each in self.parts for shard in each.addressable_shards]

    def is_deleted(self) -> bool:
        """Whether a part was deleted, as donation does."""
        return any(each.is_deleted() for each in self.parts)

    def delete(self) -> None:
        """Deletes all parts."""
        for each in self.parts:
            each.delete()

    def block_until_ready(self) -> StageArray:
        """Waits until all parts are ready; ``jax.block_until_ready`` calls it."""
        for each in self.parts:
            each.block_until_ready()
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All rows on the host."""
        if copy is False:
            raise ValueError("the rows of a StageArray are on several meshes, so one array of them is a copy")
        return np.concatenate([np.asarray(each) for each in self.parts]).astype(dtype or self.dtype, copy=False)

    def __jax_array__(self) -> jax.Array:
        """All rows as one array on the default device."""
        return jnp.asarray(self.__array__())

    def __len__(self) -> int:
        return self.edges[-1]

    def __repr__(self) -> str:
        rows = "+".join(str(each.shape[0]) for each in self.parts)
        return f"StageArray(shape={self.shape}, dtype={self.dtype}, rows={rows})"
