"""XLA's tile assignments as ``sdy`` shardings: which mesh axes split which dimension."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from hlorewrite.errors import InputError
from hlorewrite.ir import View, ir, sdy, symbol_name


@dataclass(frozen=True)
class MeshAxes:
    """A mesh over all devices: its symbol, axes with sizes, and device numbers in row-major order."""

    symbol: str
    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...]


def mesh_axes(view: View, devices: int) -> MeshAxes | None:
    """The module's mesh over all its devices; None when it has none."""
    for op in view.ops("sdy.mesh"):
        mesh = sdy.MeshAttr(op.attributes["mesh"])
        axes = tuple((axis.name, int(axis.size)) for axis in (sdy.MeshAxisAttr(each) for each in mesh.axes))
        if axes and prod(size for _, size in axes) == devices:
            return MeshAxes(symbol_name(op), axes, tuple(mesh.device_ids) or tuple(range(devices)))
    return None


def sharding_text(sharding: Any, type_: ir.Type, mesh: MeshAxes, what: str, location: str) -> str:
    """An ``HloSharding`` as text of an ``sdy.sharding``.

    Args:
      sharding: XLA's sharding of one value.
      type_: the value's global type.
      mesh: the mesh to express it over.
      what: the value's name, for errors.
      location: the module's name, for errors.

    Returns:
      Text such as ``<@mesh, [{"data"}, {}]>``.

    Raises:
      InputError: it splits a dimension unevenly or not along whole mesh axes.
    """
    shape = list(type_.shape) if isinstance(type_, ir.RankedTensorType) else []
    if sharding.is_replicated():
        return _text(mesh, [()] * len(shape))
    if not sharding.is_tiled() or sharding.subgroup_types():
        raise InputError(f"XLA shards {what} in a way that a manual computation cannot express ({sharding})",
                         location=location, hint="set a NamedSharding for it in in_shardings or out_shardings")
    sizes = list(sharding.tile_assignment_dimensions())
    grid = np.array(sharding.tile_assignment_devices()).reshape(sizes)
    if not sharding.replicate_on_last_tile_dim():
        grid = grid[..., None]
    for size, count in zip(shape, grid.shape[:-1], strict=True):
        if size % count:
            raise InputError(f"{what} of size {size} does not divide over {count} devices", location=location,
                             hint="choose sizes that the mesh divides, or leave out expose-collectives")
    split = axes_of_grid(grid, mesh)
    if split is None:
        raise InputError(f"XLA shards {what} along parts of mesh axes", location=location,
                         hint="set a NamedSharding for it in in_shardings or out_shardings")
    return _text(mesh, split)


def axes_of_grid(grid: np.ndarray, mesh: MeshAxes) -> list[tuple[str, ...]] | None:
    """The axes that split each dimension of a device grid whose last dimension holds copies.

    Example:
      >>> mesh = MeshAxes("mesh", (("a", 2), ("b", 2)), (0, 1, 2, 3))
      >>> axes_of_grid(np.array([[[0, 2]], [[1, 3]]]), mesh)
      [('b',), ()]
    """
    sizes = dict(mesh.axes)
    ids = np.array(mesh.devices).reshape([size for _, size in mesh.axes])
    names = [name for name, _ in mesh.axes]
    wanted = np.sort(grid.reshape(*grid.shape[:-1], -1), axis=-1)
    for split in _splits(list(grid.shape[:-1]), sizes, ()):
        used = [name for axes in split for name in axes]
        order = [names.index(name) for name in used] + [i for i, name in enumerate(names) if name not in used]
        laid = np.sort(ids.transpose(order).reshape(wanted.shape), axis=-1)
        if np.array_equal(laid, wanted):
            return split
    return None


def _splits(counts: list[int], sizes: dict[str, int], used: tuple[str, ...]) -> Iterator[list[tuple[str, ...]]]:
    """Every way to give each dimension an ordered choice of unused axes of the right product."""
    if not counts:
        yield []
        return
    for axes in _choices(counts[0], sizes, used):
        for rest in _splits(counts[1:], sizes, (*used, *axes)):
            yield [axes, *rest]


def _choices(count: int, sizes: dict[str, int], used: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if count == 1:
        yield ()
        return
    for name, size in sizes.items():
        if name not in used and size > 1 and count % size == 0:
            for rest in _choices(count // size, sizes, (*used, name)):
                yield (name, *rest)


def _text(mesh: MeshAxes, split: list[tuple[str, ...]]) -> str:
    dims = ", ".join("{" + ", ".join(f'"{name}"' for name in axes) + "}" for axes in split)
    return f"<@{mesh.symbol}, [{dims}]>"
