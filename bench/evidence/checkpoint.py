"""Checkpoints as one numpy file: written whole, read back onto the shardings of a given state."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax
import numpy as np


def write_checkpoint(path: Path, state: Any) -> None:
    """Writes the leaves of a replicated state; a reader never sees half a file.

    Args:
      path: the file, ``.npz``.
      state: any tree of arrays, each held by every device.
    """
    part = path.with_name(f"part-{path.name}")
    np.savez(part, *[np.asarray(leaf.addressable_data(0)) for leaf in jax.tree.leaves(state)])
    os.replace(part, path)


def read_checkpoint(path: Path, like: Any) -> Any:
    """The state in a file, with the structure and the shardings of another."""
    with np.load(path) as stored:
        leaves = [_placed(stored[f"arr_{at}"], leaf) for at, leaf in enumerate(jax.tree.leaves(like))]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _placed(value: np.ndarray, like: jax.Array) -> jax.Array:
    return jax.make_array_from_callback(value.shape, like.sharding, lambda index: value[index])
