"""Device meshes and what a text says about them: ``2x4``, ``data=2,model=4``."""

import math
from dataclasses import dataclass

import numpy as np

from hlorewrite.errors import UsageError, did_you_mean

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
