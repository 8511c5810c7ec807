"""The three ways HLO text writes replica groups: lists, iota lists, and axes of a mesh."""

import re
from itertools import pairwise
from math import prod

import numpy as np

from hlorewrite.errors import InputError

_LISTS = re.compile(r"replica_groups=\{((?:\{[\d,\s]*\},?\s*)*)\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:,\s*device_ids=\(((?:[^()]|\([^()]*\))*)\))?\s*\{([^}]*)\}")
_IDS = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?\s*)*)\}")


def parse_groups(attributes: str, count: int) -> tuple[tuple[int, ...], ...]:
    """Replica groups of an instruction.

    Args:
      attributes: the text after its operands.
      count: how many ids there are in the instruction's mode; an empty group list means all of them.

    Returns:
      One tuple of ids per group.

    Example:
      >>> parse_groups("replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}", 8)
      ((0, 2, 4, 6), (1, 3, 5, 7))
      >>> parse_groups("replica_groups=mesh['a'=2,'b'=4] {'b'}", 8)
      ((0, 1, 2, 3), (4, 5, 6, 7))
    """
    everyone = (tuple(range(count)),)
    iota = _IOTA.search(attributes)
    if iota:
        return _iota_groups(*iota.groups())
    mesh = _MESH.search(attributes)
    if mesh:
        return _mesh_groups(mesh.group(1), mesh.group(2), mesh.group(3))
    lists = _LISTS.search(attributes)
    if not lists:
        if "replica_groups=" in attributes:
            raise InputError(f"the groups of {attributes.strip()[:80]} cannot be read", hint="report it")
        return everyone
    groups = tuple(tuple(int(n) for n in group.split(",") if n.strip())
                   for group in re.findall(r"\{([\d,\s]*)\}", lists.group(1)))
    return tuple(group for group in groups if group) or everyone


def parse_pairs(attributes: str) -> tuple[tuple[int, ...], ...]:
    """(source, target) pairs of a collective-permute."""
    match = _PAIRS.search(attributes)
    if not match:
        return ()
    return tuple((int(a), int(b)) for a, b in re.findall(r"\{(\d+),(\d+)\}", match.group(1)))


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n.strip()]


def _iota_groups(shape: str, reshape: str, transpose: str | None) -> tuple[tuple[int, ...], ...]:
    dims = _numbers(reshape)
    ids = np.arange(prod(dims)).reshape(dims)
    if transpose:
        ids = ids.transpose(_numbers(transpose))
    return tuple(tuple(int(n) for n in row) for row in ids.reshape(_numbers(shape)[0], -1))


def _mesh_groups(axes: str, device_ids: str | None, used: str) -> tuple[tuple[int, ...], ...]:
    """Groups along axes of a mesh; ``'a':(1)2`` is the sub-axis of size 2 whose major part has size 1."""
    sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", axes)}
    wanted = [(name, int(pre or 1), int(size or 0))
              for name, pre, size in re.findall(r"'([^']+)'(?::\((\d+)\)(\d+))?", used)]
    dims, place = [], {}
    for name, size in sizes.items():
        cuts = sorted({1, size, *(p for n, p, _ in wanted if n == name), *(p * s for n, p, s in wanted
                                                                       if n == name and s)})
        for before, after in pairwise(cuts):
            place[name, before] = len(dims)
            dims.append(after // before)
        if size == 1:
            place[name, 1] = len(dims)
            dims.append(1)
    ids = _device_ids(device_ids) if device_ids else np.arange(prod(sizes.values()))
    moved = [position for name, pre, size in wanted
             for position in _positions(place, name, pre, pre * size if size else sizes[name])]
    rest = [axis for axis in range(len(dims)) if axis not in moved]
    rows = ids.reshape(dims).transpose(rest + moved).reshape(-1, prod(dims[axis] for axis in moved))
    return tuple(tuple(int(n) for n in row) for row in rows)


def _device_ids(text: str) -> np.ndarray:
    """Device numbers of a mesh: ``[2,4]T(1,0)`` is a transposed iota, anything else a list."""
    iota = _IDS.fullmatch(text.strip())
    if not iota or (iota.group(2) is None and "," in iota.group(1)):
        return np.array(_numbers(text.strip("[] ")))
    dims = _numbers(iota.group(1))
    ids = np.arange(prod(dims)).reshape(dims)
    return (ids.transpose(_numbers(iota.group(2))) if iota.group(2) else ids).reshape(-1)


def _positions(place: dict[tuple[str, int], int], name: str, start: int, end: int) -> list[int]:
    return [position for (axis, before), position in place.items() if axis == name and
            (start <= before < end or (start == end and before == start))]
