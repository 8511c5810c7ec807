"""The state of a pipeline: results that become arguments, as arrays over all processes, and a summary of it."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from hlorewrite.ir import Module, View, ir
from hlorewrite.pipelines.decorator.stage_array import StageArray
from hlorewrite.pipelines.mpmd.program import Program
from hlorewrite.pipelines.mpmd.rows import RowParts, row_parts
from hlorewrite.pipelines.mpmd.types import device_bytes
from hlorewrite.pipelines.passes.split_stages.step import ALIASED, RETURNED
from hlorewrite.pipelines.runtime.reshard import reshard
from hlorewrite.util.sizes import format_bytes
from hlorewrite.util.tables import table

# ---- the results of a step that take the places of its arguments in the next call


_DONOR = "jax.buffer_donor"


def carried_places(args_info: Any, out_info: Any) -> dict[int, int]:
    """The result that takes an argument's place: the same pytree of the same shapes, in order.

    Args:
      args_info: ``jax.stages.Lowered.args_info``: positional and named arguments. The last positional one is the batch;
        the step returns it only if it is donated.
      out_info: ``jax.stages.Lowered.out_info``.

    Returns:
      The number of the result by the number of the argument, leaves in order.

    Example:
      >>> lowered = jax.jit(lambda state, x: (x.sum(), state)).lower({"w": 1.0, "b": 2.0}, jax.numpy.ones(3))
      >>> carried_places(lowered.args_info, lowered.out_info)
      {0: 1, 1: 2}
    """
    positional, named = args_info
    trees, first = list[tuple[int, Any, bool]](), 0
    for place, tree in enumerate((*positional, *named.values())):
        leaves = jax.tree.leaves(tree)
        donated = bool(leaves) and any(each.donated for each in leaves)
        if leaves and (donated or place < len(positional) - 1):
            trees.append((first, tree, donated))
        first += len(leaves)
    results = list(_subtrees(out_info, 0, 0))
    found: dict[int, int] = {}
    for start, tree, _ in sorted(trees, key=lambda each: (not each[2], each[0])):
        kind = _kind(tree)
        taken = set(found.values())
        place = next((place for place, other in results if other == kind and place not in taken), None)
        if place is not None:
            found |= {start + number: place + number for number in range(len(kind[1]))}
    return found


_DEEPEST = 3
"""How deep in the results a state is looked for."""


def _subtrees(tree: Any, first: int, depth: int) -> Iterator[tuple[int, Any]]:
    """(number of the first leaf, kind) of a pytree and of what it holds, outermost first."""
    kind = _kind(tree)
    if not kind[1]:
        return
    yield first, kind
    if depth < _DEEPEST:
        for child in _children(tree):
            yield from _subtrees(child, first, depth + 1)
            first += len(jax.tree.leaves(child))


def _children(tree: Any) -> Sequence[Any]:
    return jax.tree.leaves(tree, is_leaf=lambda each: each is not tree)


def _kind(tree: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(tuple(leaf.shape), leaf.dtype) for leaf in leaves]


def note_carried(module: Module, carried: dict[int, int]) -> None:
    """Records on the arguments of a step which results take their places. The results take the buffers of arguments
    that are donated.

    Args:
      module: the step; it is changed.
      carried: what `carried_places` found.
    """
    main = View(module).functions["main"]
    if "arg_attrs" not in main.attributes:
        return
    rows = [{each.name: each.attr for each in ir.DictAttr(row)} for row in ir.ArrayAttr(main.attributes["arg_attrs"])]
    taken = set(carried.values())
    with module.context:
        i32 = ir.IntegerType.get_signless(32)
        for argument, row in enumerate(rows):
            donated = ALIASED in row or _DONOR in row
            if argument in carried:
                row.pop(_DONOR, None)
                row[ALIASED if donated else RETURNED] = ir.IntegerAttr.get(i32, carried[argument])
            elif ALIASED in row and ir.IntegerAttr(row[ALIASED]).value in taken:
                del row[ALIASED]
                row[_DONOR] = ir.BoolAttr.get(True)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])


# ---- the state of a pipeline as arrays over all of its processes, as checkpoints want them


AXIS = "devices"


def global_sharding(shape: Sequence[int], devices: Sequence[Any]) -> NamedSharding:
    """A sharding that gives every process a part, as evenly as the shape allows.

    Args:
      shape: the shape of the array.
      devices: the devices of the pipeline.

    Returns:
      It is cut along the first dimension that the number of devices divides. Failing that, along one that the number of
      processes divides, over one device of each. Failing that, a copy on one device of each process.

    Example:
      >>> tuple(global_sharding((3, 4), jax.devices()[:1]).spec)
      ('devices',)
    """
    first: dict[int, Any] = {}
    for device in devices:
        first.setdefault(device.process_index, device)
    for chosen in (list(devices), list(first.values())):
        mesh = jax.sharding.Mesh(np.array(chosen), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,))
        for dimension, size in enumerate(shape):
            if size and size % len(chosen) == 0:
                return NamedSharding(mesh, PartitionSpec(*(None,) * dimension, AXIS))
    mesh = jax.sharding.Mesh(np.array(list(first.values())), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,))
    return NamedSharding(mesh, PartitionSpec())


def processes_of(sharding: Sharding) -> set[int]:
    """The processes that have devices of a sharding."""
    return {device.process_index for device in sharding.device_set}


def to_global(value: Any, devices: Sequence[Any], timeout_s: float) -> Any:
    """Makes an array that every process of a pipeline has a part of; every process must call this.

    Args:
      value: what a step returned, or a host value, the same on all processes.
      devices: the devices of the pipeline.
      timeout_s: how long to wait for each other process, seconds.

    Returns:
      The array itself where every process has a part of it already; a ``StageArray`` as one array.
    """
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        data = to_global(jax.random.key_data(value), devices, timeout_s)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(value))
    everyone = {device.process_index for device in devices}
    if isinstance(value, StageArray) and len(everyone) > 1:
        return _joined(value, devices, timeout_s)
    if isinstance(value, jax.Array) and processes_of(value.sharding) >= everyone:
        return value
    sharding = global_sharding(np.shape(value), devices)
    if isinstance(value, jax.Array) and isinstance(value.sharding, NamedSharding) and len(everyone) > 1:
        return reshard(value, sharding, timeout_s=timeout_s)
    host = np.asarray(value)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index], dtype=host.dtype)


def _joined(value: StageArray, devices: Sequence[Any], timeout_s: float) -> jax.Array:
    """The rows of all stages as one array over all processes; any cut is along a dimension other than the rows."""
    sharding = global_sharding((1, *value.shape[1:]), devices)
    parts = [reshard(part, sharding, timeout_s=timeout_s) for part in value.parts]
    return jax.jit(lambda *rows: jnp.concatenate(rows), out_shardings=sharding)(*parts)


def rows_moved_to(value: Any, edges: Sequence[int], shardings: Sequence[NamedSharding], timeout_s: float) -> Any:
    """The rows of each stage of an array that is cut over several processes; any other array as it is.

    Args:
      value: the value of the whole stack.
      edges: the first row of each stage, and the number of rows.
      shardings: where the rows of each stage go.
      timeout_s: how long to wait for each other process, seconds.
    """
    if not isinstance(value, jax.Array) or value.is_fully_replicated or len(processes_of(value.sharding)) == 1 or \
            not isinstance(value.sharding, NamedSharding):
        return value
    whole_rows = NamedSharding(value.sharding.mesh, PartitionSpec(None, *value.sharding.spec[1:]))
    taken = (jax.jit(functools.partial(jax.lax.slice_in_dim, start_index=low, limit_index=high),
                     out_shardings=whole_rows)(value) for low, high in pairwise(edges))
    return StageArray([reshard(part, sharding, timeout_s=timeout_s)
                       for part, sharding in zip(taken, shardings, strict=True)])


def moved_to(value: Any, sharding: NamedSharding, timeout_s: float) -> Any:
    """An array that is cut over several processes, moved to where a program takes it; any other array as it is.

    The answer depends on the array's sharding alone, so that all processes move the same arrays.
    """
    if not isinstance(value, jax.Array) or value.is_fully_replicated or len(processes_of(value.sharding)) == 1 or \
            value.sharding.is_equivalent_to(sharding, value.ndim):
        return value
    return reshard(value, sharding, timeout_s=timeout_s)


# ---- the state of a pipeline: bytes on each mesh, and norms and checks of arrays on several meshes


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
