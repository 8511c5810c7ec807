"""The part of a value that each device holds, by the shardings that XLA writes into HLO."""

import re
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hlorewrite.hlo.groups import iota_ids
from hlorewrite.hlo.parse import HloInstruction
from hlorewrite.hlo.shapes import split_top

_COMMENT = re.compile(r"/\*.*?\*/")
_MESH = re.compile(r"\{mesh\[([^\]]*)\], (?:(replicated)|\[(.*)\])\}")
_AXIS_SIZE, _AXIS = re.compile(r"'([^']+)'=(\d+)"), re.compile(r"'([^']+)'")
_IOTA = re.compile(r"\{devices=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?( last_tile_dim_replicate)?\}")


def shardings(instruction: HloInstruction) -> list[str]:
    """How each result of an instruction is sharded; empty if nothing is said.

    Example:
      >>> from hlorewrite.hlo.parse import HloInstruction
      >>> shardings(HloInstruction("t", "(f32[2], f32[4])", "tuple", (), ", sharding={{replicated}, {replicated}}"))
      ['{replicated}', '{replicated}']
    """
    parts = split_top(_COMMENT.sub("", instruction.attributes))
    text = next((part.removeprefix("sharding=") for part in parts if part.startswith("sharding=")), "")
    return split_top(text[1:-1]) if text.startswith("{{") else [text] * bool(text)


@dataclass(frozen=True)
class Tiles:
    """The devices that hold each part of a value.

    Attributes:
      devices: ids, one dimension for each of the value and a last one for replicas.
    """

    devices: NDArray[np.int64]

    @property
    def parts(self) -> tuple[int, ...]:
        """Into how many parts each dimension is cut."""
        return self.devices.shape[:-1]

    def along(self, dim: int) -> list[list[int]]:
        """The devices whose parts lie side by side along a dimension, in order; the last dimension gives replicas."""
        rows = np.moveaxis(self.devices, dim, -1).reshape(-1, self.devices.shape[dim])
        return [[int(device) for device in row] for row in rows]

    def place(self, dim: int) -> list[int]:
        """For each device, the number of its part along a dimension."""
        found = [0] * self.devices.size
        for at, device in np.ndenumerate(self.devices):
            found[int(device)] = at[dim]
        return found


def tiles_of(sharding: str, rank: int, count: int) -> Tiles | None:
    """The parts of a value.

    Args:
      sharding: as XLA prints it; empty where it says nothing, and then every device holds all.
      rank: how many dimensions the value has.
      count: how many devices there are.

    Returns:
      The parts; None for a sharding of another form: parts of axes, devices in another order, one device alone.

    Raises:
      InputError: an iota of devices has no such order.

    Example:
      >>> tiles_of("{mesh['a'=2,'b'=2], [{'b'}, {}]}", 2, 4).devices.tolist()
      [[[0, 2]], [[1, 3]]]
      >>> tiles_of("{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", 2, 4).devices.tolist()
      [[[0, 2]], [[1, 3]]]
    """
    if sharding in ("", "{replicated}"):
        return _tiles(np.arange(count), [1] * rank)
    mesh, iota = _MESH.fullmatch(sharding), _IOTA.fullmatch(sharding)
    if mesh is not None:
        return _of_mesh(mesh[1], [] if mesh[2] else split_top(mesh[3]), rank, count)
    if iota is None:
        return None
    dims, devices = [int(n) for n in iota[1].split(",")], iota_ids(iota[2], iota[3])
    parts = dims[:-1] if iota[4] else dims
    return _tiles(devices, parts) if devices.size == count and len(parts) == rank else None


def _of_mesh(mesh: str, dims: list[str], rank: int, count: int) -> Tiles | None:
    axes = {name: int(size) for name, size in _AXIS_SIZE.findall(mesh)}
    if not axes:
        return _tiles(np.arange(count), [1] * rank)
    named = [_AXIS.findall(dim) for dim in dims] or [[]] * rank
    written = ["{" + ", ".join(f"'{axis}'" for axis in each) + "}" for each in named]
    known = (not dims or dims == written) and not _AXIS_SIZE.sub("", mesh).strip(",")
    if not known or len(named) != rank or prod(axes.values()) != count:
        return None
    order = [axis for each in named for axis in each]
    order += [axis for axis in axes if axis not in order]
    devices = np.arange(count).reshape(list(axes.values())).transpose([list(axes).index(axis) for axis in order])
    return _tiles(devices, [prod(axes[axis] for axis in each) for each in named])


def _tiles(devices: NDArray[np.int64], parts: list[int]) -> Tiles:
    return Tiles(devices.reshape(*parts, devices.size // prod(parts)))
