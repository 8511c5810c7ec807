"""Where each tile of a sharded tensor lives: the device mesh, grid cuts per dimension, the devices of each tile."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.errors import UsageError, did_you_mean

# ---- device meshes and what a text says about them: ``2x4``, ``data=2,model=4``


MOST_DEVICES = 1 << 20
"""The most devices of a mesh: more than any cluster has."""


@dataclass(frozen=True)
class ReshardMesh:
    """Devices in a named grid, row-major.

    Args:
      axes: name and size of each axis, major first.
      devices: device ids, shape ``[product of sizes]``.

    Raises:
      UsageError: sizes and devices do not agree, or an axis name or device appears twice.

    Example:
      >>> ReshardMesh((("x", 2), ("y", 2)), np.arange(4)).size
      4
    """

    axes: tuple[tuple[str, int], ...]
    devices: np.ndarray

    def __post_init__(self) -> None:
        names = [name for name, _ in self.axes]
        if len(set(names)) != len(names):
            raise UsageError(f"the mesh has an axis name twice: {', '.join(names)}", hint="name each axis once")
        if any(size < 1 for _, size in self.axes):
            raise UsageError(f"a mesh axis with a size below one: {self.axes}", hint="sizes must be at least 1")
        if self.devices.ndim != 1 or self.devices.size != self.size:
            raise UsageError(f"a mesh of {self.size} devices got {self.devices.size} device ids",
                             hint="pass one id per device, in row-major order")
        if np.unique(self.devices).size != self.size:
            raise UsageError("a device appears twice in the mesh", hint="list each device once")

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(size for _, size in self.axes)


def parse_mesh(text: str, first_device: int = 0) -> ReshardMesh:
    """Reads a mesh from text; devices are numbered from ``first_device`` on.

    Args:
      text: ``HOSTSxGPUS`` (axes ``host`` and ``gpu``), ``N`` (one axis ``gpu``: one host),
        ``AxBxC`` (axes ``host``, ``axis1``, ..., ``gpu``) or ``name=size,name=size``.
      first_device: id of the first device.

    Returns:
      The mesh.

    Raises:
      UsageError: the text is none of these forms.

    Example:
      >>> parse_mesh("2x4").axes
      (('host', 2), ('gpu', 4))
      >>> parse_mesh("data=2,model=4", first_device=8).devices.tolist()
      [8, 9, 10, 11, 12, 13, 14, 15]
    """
    if "=" in text:
        pairs = [part.partition("=") for part in text.split(",")]
        names, sizes = [p[0].strip() for p in pairs], [p[2].strip() for p in pairs]
    else:
        sizes = text.split("x")
        middle = [f"axis{i}" for i in range(1, len(sizes) - 1)]
        names = ["gpu"] if len(sizes) == 1 else ["host", *middle, "gpu"]
    if not all(name and size.isdecimal() and int(size) > 0 for name, size in zip(names, sizes, strict=True)):
        raise UsageError(f'"{text}" is not a mesh', hint='write HOSTSxGPUS as in "2x4", or "data=2,model=4"')
    axes = tuple((name, int(size)) for name, size in zip(names, sizes, strict=True))
    count = math.prod(size for _, size in axes)
    if count > MOST_DEVICES or first_device > MOST_DEVICES:
        raise UsageError(f"the mesh {text[:80]} has too many devices", hint=f"plan for at most {MOST_DEVICES}")
    return ReshardMesh(axes, np.arange(first_device, first_device + count))


def parse_spec(text: str, mesh: ReshardMesh) -> tuple[tuple[str, ...], ...]:
    """Reads a sharding from text: per dimension the axes it is sharded over.

    Args:
      text: entries separated by commas: ``-`` for unsharded, ``all`` for every axis row-major,
        an axis name, or names joined by ``+``, major first. Empty for a scalar.
      mesh: the mesh that has the axes. ``host`` and ``gpu`` name the first and last axis of an
        unnamed mesh.

    Returns:
      One tuple of axis names per dimension.

    Raises:
      UsageError: an axis is unknown, or is used twice.

    Example:
      >>> parse_spec("host,-,gpu", parse_mesh("2x4"))
      (('host',), (), ('gpu',))
      >>> parse_spec("all,-", parse_mesh("2x4"))
      (('host', 'gpu'), ())
    """
    if not text.strip():
        return ()
    known = [name for name, _ in mesh.axes]
    spec = tuple(_entry_axes(entry.strip(), known) for entry in text.split(","))
    return check_spec(spec, mesh)


def _entry_axes(entry: str, known: list[str]) -> tuple[str, ...]:
    if entry in ("-", ""):
        return ()
    if entry == "all" and "all" not in known:
        return tuple(known)
    return tuple(name.strip() for name in entry.split("+"))


def check_spec(spec: tuple[tuple[str, ...], ...], mesh: ReshardMesh) -> tuple[tuple[str, ...], ...]:
    """The spec itself when its axes are the mesh's and none is used twice.

    Raises:
      UsageError: otherwise.
    """
    known = [*(name for name, _ in mesh.axes), "all"]
    used: set[str] = set()
    for name in (name for entry in spec for name in entry):
        axis = name.partition(":")[0]
        if axis not in known:
            raise UsageError(f'the mesh has no axis "{axis}"', hint=did_you_mean(axis, known))
        if name in used:
            raise UsageError(f'axis "{name}" shards two dimensions', hint="use each axis once")
        used.add(name)
    return spec


# ---- tiles


_SUB_AXIS = re.compile(r"(?P<name>.+):\((?P<before>\d+)\)(?P<size>\d+)")


@dataclass(frozen=True)
class Layout:
    """A tensor cut into a grid of tiles, each held by the same number of devices.

    Args:
      shape: the tensor's shape.
      cuts: per dimension the tile boundaries, shape ``[tiles of that dimension + 1]``, rising from 0 to
        the dimension; equal neighbours make an empty tile.
      devices: device ids of each tile in row-major grid order, shape ``[tiles, replicas]``.

    Example:
      >>> grid = sharded((5, 4), ReshardMesh((("x", 2), ("y", 2)), np.arange(4)), (("x",), ()))
      >>> grid.cuts[0].tolist(), grid.devices.tolist()
      ([0, 3, 5], [[0, 1], [2, 3]])
    """

    shape: tuple[int, ...]
    cuts: tuple[np.ndarray, ...]
    devices: np.ndarray

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of tiles along each dimension."""
        return tuple(len(cut) - 1 for cut in self.cuts)

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """Shape of the largest tile: what every device's buffer is shaped like."""
        return tuple(int(np.diff(cut).max()) for cut in self.cuts)

    def tile_start(self, tile: int) -> tuple[int, ...]:
        """Where a tile starts in the tensor, one index per dimension."""
        where = np.unravel_index(tile, self.grid) if self.grid else ()
        return tuple(int(cut[i]) for cut, i in zip(self.cuts, where, strict=True))

    def tile_of_device(self) -> dict[int, int]:
        """The tile each device holds, by device id."""
        return {int(device): tile for tile, row in enumerate(self.devices) for device in row}


MOST_ELEMENTS = 1 << 56
"""Above it, offsets in bytes do not fit into 64 bits."""


def sharded(shape: Sequence[int], mesh: ReshardMesh, spec: Sequence[Sequence[str]]) -> Layout:
    """The layout of a NamedSharding or ``sdy.sharding``.

    Tiles are ``ceil(dim / shards)`` long as in GSPMD and Shardy; the last ones may be shorter or empty.
    Axes that no dimension uses replicate.

    Args:
      shape: the tensor's shape.
      mesh: the mesh.
      spec: per dimension the axis names it is sharded over, major first; a sub-axis is written
        ``name:(product of the sizes before)size`` as Shardy prints it. Shorter specs leave the last
        dimensions unsharded.

    Returns:
      The layout.

    Raises:
      UsageError: the spec has more dimensions than the shape, an unknown axis, or one twice.

    Example:
      >>> sharded((8,), ReshardMesh((("x", 4),), np.arange(4)), (("x:(2)2",),)).devices.tolist()
      [[0, 2], [1, 3]]
    """
    shape = tuple(int(size) for size in shape)
    if len(spec) > len(shape):
        raise UsageError(f"the sharding has {len(spec)} dimensions, but the tensor has {len(shape)}",
                         hint="pass one entry per dimension of the shape")
    if any(size < 0 for size in shape):
        raise UsageError(f"the shape {shape} has a negative dimension", hint="sizes start at 0")
    if math.prod(size or 1 for size in shape) > MOST_ELEMENTS:
        raise UsageError(f"the shape {shape} has more than 2^56 elements", hint="no cluster holds such a tensor")
    full = tuple(tuple(entry) for entry in spec) + ((),) * (len(shape) - len(spec))
    check_spec(full, mesh)
    factors, place = _split_axes(mesh, full)
    order = [place[name] for entry in full for name in entry]
    rest = [i for i in range(len(factors)) if i not in order]
    tiles = [math.prod(factors[place[name]] for name in entry) for entry in full]
    grid = mesh.devices.reshape(factors).transpose(order + rest)
    cuts = tuple(_even_cuts(size, n) for size, n in zip(shape, tiles, strict=True))
    return Layout(shape, cuts, grid.reshape(math.prod(tiles), -1))


def _even_cuts(size: int, tiles: int) -> np.ndarray:
    tile = -(-size // tiles)
    return np.minimum(np.arange(tiles + 1) * tile, size)


def _split_axes(mesh: ReshardMesh, spec: tuple[tuple[str, ...], ...]) -> tuple[list[int], dict[str, int]]:
    """Sizes of the mesh's axes with sub-axes split off, and where each used name is among them."""
    used = [name for entry in spec for name in entry]
    factors: list[int] = []
    place: dict[str, int] = {}
    for axis, size in mesh.axes:
        subs = sorted((int(m["before"]), int(m["size"]), m[0]) for name in used
                      if (m := _SUB_AXIS.fullmatch(name)) and m["name"] == axis)
        if axis in used and subs:
            raise UsageError(f'axis "{axis}" is used whole and in part', hint="use one of them")
        done = 1
        for before, part, name in subs:
            if before % done or size % (before * part):
                raise UsageError(f'sub-axis "{name}" does not divide axis "{axis}" of size {size}',
                                 hint="write AXIS:(PRODUCT BEFORE)SIZE with products that divide the axis")
            if before != done:
                factors.append(before // done)
            place[name] = len(factors)
            factors.append(part)
            done = before * part
        if not subs:
            place[axis] = len(factors)
        if not subs or done != size:
            factors.append(size // done)
    return factors, place


def from_boxes(shape: Sequence[int], boxes: Mapping[int, Sequence[tuple[int, int]]]) -> Layout:
    """The layout given by what each device holds, for shardings without a named mesh.

    Args:
      shape: the tensor's shape.
      boxes: device id -> per dimension (start, stop).

    Returns:
      The layout.

    Raises:
      UsageError: the boxes are not a grid, or a tile is held by more devices than another.

    Example:
      >>> from_boxes((4,), {0: [(0, 2)], 1: [(2, 4)], 2: [(0, 2)], 3: [(2, 4)]}).devices.tolist()
      [[0, 2], [1, 3]]
    """
    shape = tuple(int(size) for size in shape)
    cuts = tuple(np.array(sorted({0, size, *(edge for box in boxes.values() for edge in box[dim])}))
                 if size else np.array([0, 0]) for dim, size in enumerate(shape))
    held: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for device, box in boxes.items():
        held.setdefault(tuple((int(a), int(b)) for a, b in box), []).append(device)
    grid = [[(int(a), int(b)) for a, b in itertools.pairwise(cut)] for cut in cuts]
    tiles = [held.get(box) for box in itertools.product(*grid)]
    if any(tile is None for tile in tiles) or len(tiles) != len(held) or len({len(t) for t in held.values()}) != 1:
        raise UsageError("the sharding is not a grid of tiles with equally many replicas",
                         hint="use a NamedSharding")
    return Layout(shape, cuts, np.array(tiles, dtype=np.int64).reshape(len(tiles), -1))
