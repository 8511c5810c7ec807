"""The state of a pipeline: bytes on each mesh, and norms and checks of arrays on several meshes."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from hlorewrite.ir import Module
from hlorewrite.pipelines.decorator.stage_array import StageArray
from hlorewrite.pipelines.mpmd.program import Program
from hlorewrite.pipelines.mpmd.rows import RowParts, row_parts
from hlorewrite.pipelines.mpmd.types import device_bytes
from hlorewrite.util.sizes import format_bytes
from hlorewrite.util.tables import table


@dataclass(frozen=True)
class MeshState:
    """Bytes of a step's state on one mesh: of the arguments whose place a result takes, and of these results.

    Attributes:
      mesh: its name.
      before: bytes of the arguments.
      after: bytes of the results.
      device: bytes of the arguments on each of its devices.
    """

    mesh: str
    before: int
    after: int
    device: float


def state_on_meshes(module: Module, program: Program, carried: dict[int, int]) -> tuple[MeshState, ...]:
    """Bytes of a step's state on each mesh.

    Args:
      module: the step's program.
      program: the same as data.
      carried: the number of the step's result that takes an argument's place, by the argument's number.
    """
    arguments, results = row_parts(module)
    before = _types(program, program.arguments, arguments, carried.keys())
    after = _types(program, program.results, results, carried.values())
    return tuple(MeshState(name, sum(each.bytes for each in before if each.mesh == name),
                           sum(each.bytes for each in after if each.mesh == name),
                           sum(device_bytes(each, mesh) for each in before if each.mesh == name))
                 for name, mesh in program.meshes.items())


def _types(program: Program, values: Sequence[int], groups: Sequence[RowParts], wanted: Any) -> list[Any]:
    return [program.types[values[place]] for number in wanted for place in groups[number].positions]


def state_table(rows: Sequence[MeshState]) -> list[str]:
    """The same as lines of a table; none without state."""
    if not any(each.before for each in rows):
        return []
    lines = [(each.mesh, *(format_bytes(size, 1) for size in (each.before, each.after, each.device))) for each in rows]
    return table([("state on mesh", "before", "after", "on a device"), *lines], "<>>>")


# ---- norms and checks of values


@dataclass(frozen=True)
class LeafSummary:
    """One array of a state, or the rows of one stage.

    Attributes:
      name: its place in the pytree.
      shape: the shape of the array.
      dtype: the dtype of the array.
      devices: numbers of the devices that hold it.
      squares: the sum of its squared elements.
      largest: its largest element, without sign.
      not_finite: how many of its elements are infinite or NaN.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    devices: tuple[int, ...]
    squares: float
    largest: float
    not_finite: int


@dataclass(frozen=True)
class StateSummary:
    """Norms and checks of a pytree of arrays; as text it is a table.

    Attributes:
      leaves: one entry for each array.
    """

    leaves: tuple[LeafSummary, ...]

    @property
    def norm(self) -> float:
        """The square root of the sum of all squared elements, as ``optax.global_norm``."""
        return math.sqrt(sum(each.squares for each in self.leaves))

    @property
    def not_finite(self) -> tuple[str, ...]:
        """Names of the arrays with elements that are infinite or NaN."""
        return tuple(each.name for each in self.leaves if each.not_finite)

    def __str__(self) -> str:
        rows = [("array", "shape", "dtype", "devices", "norm", "largest", "not finite")]
        rows += [(each.name, "x".join(map(str, each.shape)) or "-", each.dtype,
                  ",".join(map(str, each.devices)),
                  f"{math.sqrt(each.squares):.4g}", f"{each.largest:.4g}", str(each.not_finite))
                 for each in self.leaves]
        return "\n".join(table(rows, "<<<<>>>"))


def summarize(tree: Any, fetch: Callable[[str, jax.Array], np.ndarray | None]) -> StateSummary:
    """Norms and checks of a pytree, each array reduced where it is; every process must call this.

    Args:
      tree: results of a step.
      fetch: brings a small array to the host of every process; it is given a name too.
    """
    leaves = []
    for name, value in _arrays(tree):
        found = fetch(f"summary of {name}", _numbers_of(value))
        squares, largest, wrong = (0.0, 0.0, 0.0) if found is None else map(float, found)
        leaves.append(LeafSummary(name, tuple(value.shape), str(value.dtype), devices=_devices(value.sharding),
                                  squares=squares, largest=largest, not_finite=int(wrong)))
    return StateSummary(tuple(leaves))


def _arrays(tree: Any) -> Iterator[tuple[str, jax.Array]]:
    """All arrays of numbers, those of stages one by one."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(path) or "value"
        parts = [(f"{name}[{low}:{high}]", part) for part, low, high in
                 zip(leaf.parts, leaf.edges, leaf.edges[1:], strict=False)] if isinstance(leaf, StageArray) else [
            (name, leaf if isinstance(leaf, jax.Array) else jnp.asarray(leaf))]
        yield from ((name, part) for name, part in parts if jnp.issubdtype(part.dtype, jnp.number))


def _devices(sharding: Sharding) -> tuple[int, ...]:
    return tuple(sorted(device.id for device in sharding.device_set))


def _numbers_of(value: jax.Array) -> jax.Array:
    """Sum of squares, largest element and number of elements that are not finite; without shards where the array has
    none here."""
    sharding = value.sharding
    if isinstance(sharding, NamedSharding):
        sharding = NamedSharding(sharding.mesh, PartitionSpec())
    if not value.sharding.addressable_devices:
        return jax.make_array_from_single_device_arrays((3,), sharding, [], dtype=np.float32)
    return _reducer(sharding)(value)


@functools.cache
def _reducer(sharding: Sharding) -> Callable[[jax.Array], jax.Array]:
    return jax.jit(_reduced, out_shardings=sharding)


def _reduced(value: jax.Array) -> jax.Array:
    size = jnp.abs(value).astype(jnp.float32)
    wrong = jnp.sum(~jnp.isfinite(size))
    return jnp.stack([jnp.sum(size * size), jnp.max(size, initial=0.0), wrong]).astype(jnp.float32)
