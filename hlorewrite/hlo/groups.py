"""The three ways HLO text writes replica groups: lists, iota lists, and axes of a mesh."""

import re
from itertools import pairwise
from math import prod

import numpy as np

from hlorewrite.errors import InputError
from hlorewrite.util.sizes import MOST_DEVICES

_LISTS = re.compile(r"replica_groups=\{((?:\{[\d,\s]*\},?\s*)*)\}")
_IOTA = re.compile(r"replica_groups=\[([\d,\s]+)\]\s*<=\s*\[([\d,\s]+)\](?:\s*T\(([\d,\s]+)\))?")
_MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:,\s*device_ids=\(((?:[^()]|\([^()]*\))*)\))?\s*\{([^}]*)\}")
_IDS = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")
_PAIR = r"\{\s*(\d+)\s*,\s*(\d+)\s*\}"
_PAIRS = re.compile(rf"source_target_pairs=\{{((?:\s*{_PAIR.replace('(', '(?:')}\s*,?)*)\s*\}}")
_DAMAGED = "XLA refuses it too; write the text again"


def parse_groups(attributes: str, count: int) -> tuple[tuple[int, ...], ...]:
    """Replica groups of an instruction.

    Args:
      attributes: the text after its operands.
      count: how many ids there are in the instruction's mode; an empty group list means all of them.

    Returns:
      One tuple of ids per group.

    Raises:
      InputError: they are in no known form, a device appears twice in them, or there are more than ``MOST_DEVICES``.

    Example:
      >>> parse_groups("replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}", 8)
      ((0, 2, 4, 6), (1, 3, 5, 7))
      >>> parse_groups("replica_groups=mesh['a'=2,'b'=4] {'b'}", 8)
      ((0, 1, 2, 3), (4, 5, 6, 7))
    """
    everyone = (tuple(range(count)),)
    lists, iota, mesh = _LISTS.search(attributes), _IOTA.search(attributes), _MESH.search(attributes)
    if iota:
        return _iota_groups(*iota.groups())
    if mesh:
        return _distinct(_mesh_groups(mesh.group(1), mesh.group(2), mesh.group(3)))
    if not lists:
        if "replica_groups=" in attributes:
            raise InputError(f"the groups of {attributes.strip()[:80]} cannot be read", hint="report it")
        return everyone
    groups = tuple(tuple(int(n) for n in group.split(",") if n.strip())
                   for group in re.findall(r"\{([\d,\s]*)\}", lists.group(1)))
    return _distinct(tuple(group for group in groups if group)) or everyone


def _distinct(groups: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Groups in which no device appears twice.

    Raises:
      InputError: one does.
    """
    seen: set[int] = set()
    for group in groups:
        for member in group:
            if member in seen:
                raise InputError(f"device {member} appears twice in replica groups", hint=_DAMAGED)
            seen.add(member)
    return groups


def parse_pairs(attributes: str) -> tuple[tuple[int, ...], ...]:
    """(source, target) pairs of a collective-permute.

    Raises:
      InputError: they are in no known form, or a device sends or receives twice, and not one of several slices.
    """
    match = _PAIRS.search(attributes)
    if not match:
        if "source_target_pairs=" in attributes:
            raise InputError(f"the pairs of {attributes.strip()[:80]} cannot be read", hint=_DAMAGED)
        return ()
    pairs = tuple((int(a), int(b)) for a, b in re.findall(_PAIR, match.group(1)))
    if "slice_sizes=" not in attributes and any(len({pair[side] for pair in pairs}) != len(pairs) for side in (0, 1)):
        raise InputError(f"a device appears twice on one side of the pairs {match.group(0)[:80]}", hint=_DAMAGED)
    return pairs


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n.strip()]


def _iota_groups(shape: str, reshape: str, transpose: str | None) -> tuple[tuple[int, ...], ...]:
    rows, ids = _numbers(shape), iota_ids(reshape, transpose)
    if prod(rows) != ids.size:
        raise InputError(f"the {ids.size} devices of the replica groups [{shape}]<=[{reshape}] do not fill them",
                         hint=_DAMAGED)
    return tuple(tuple(int(n) for n in row) for row in ids.reshape(rows[0], -1))


def iota_ids(reshape: str, transpose: str | None) -> np.ndarray:
    """The numbers 0, 1, ... in a shape of several dimensions, transposed, in row-major order.

    Raises:
      InputError: the shape is empty or has more than ``MOST_DEVICES`` places, or the order is none of its dimensions.
    """
    dims, order = _numbers(reshape), _numbers(transpose or "")
    if not 0 < prod(dims) <= MOST_DEVICES:
        raise InputError(f"groups of {prod(dims)} devices are too large to read",
                         hint=f"at most {MOST_DEVICES} are read")
    if transpose and sorted(order) != list(range(len(dims))):
        raise InputError(f"T({transpose}) is not an order of the dimensions of [{reshape}] in replica groups",
                         hint=_DAMAGED)
    ids = np.arange(prod(dims)).reshape(dims)
    return (ids.transpose(order) if transpose else ids).reshape(-1)


def _mesh_groups(axes: str, device_ids: str | None, used: str) -> tuple[tuple[int, ...], ...]:
    """Groups along axes of a mesh; ``'a':(1)2`` is the sub-axis of size 2 whose major part has size 1.

    Raises:
      InputError: the axes, their parts or the devices are none of the mesh.
    """
    sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", axes)}
    if not 0 < prod(sizes.values()) <= MOST_DEVICES:
        raise InputError(f"a mesh of {prod(sizes.values())} devices is too large",
                         hint=f"at most {MOST_DEVICES} are read")
    wanted = [(name, int(pre or 1), int(size or 0))
              for name, pre, size in re.findall(r"'([^']+)'(?::\((\d+)\)(\d+))?", used)]
    for name, pre, size in wanted:
        if name not in sizes or sizes[name] % max(pre * size, 1):
            raise InputError(f"replica groups name '{name}', which is not an axis or a part of one in [{axes}]",
                             hint=_DAMAGED)
    dims, place = [], {}
    for name, size in sizes.items():
        cuts = sorted({1, size, *(p for n, p, _ in wanted if n == name), *(p * s for n, p, s in wanted
                                                                       if n == name and s)})
        if any(after % before for before, after in pairwise(cuts)):
            raise InputError(f"replica groups use parts of '{name}' that overlap", hint=_DAMAGED)
        for before, after in pairwise(cuts):
            place[name, before] = len(dims)
            dims.append(after // before)
        if size == 1:
            place[name, 1] = len(dims)
            dims.append(1)
    ids = _device_ids(device_ids) if device_ids else np.arange(prod(sizes.values()))
    if ids.size != prod(dims):
        raise InputError(f"{ids.size} device ids do not fill the mesh [{axes}]", hint=_DAMAGED)
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
    return iota_ids(iota.group(1), iota.group(2))


def _positions(place: dict[tuple[str, int], int], name: str, start: int, end: int) -> list[int]:
    return [position for (axis, before), position in place.items() if axis == name and
            (start <= before < end or (start == end and before == start))]
