"""Who sends how much to whom, before and after, small enough for a page."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.collectives.kinds import KINDS
from hlorewrite.cost.traffic import CollectiveTraffic, traffic_matrix
from hlorewrite.viewer.communication import CollectiveRow, Groups, Side

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

MOST_CELLS = 128
"""Rows of the picture; with more devices, several neighbours share a row."""
MOST_DEVICES = 8192


def traffic_of(before: Side, after: Side) -> dict[str, Any] | None:
    """The communication matrices of both sides and the groups after them.

    Args:
      before: what the module communicated.
      after: what it communicates now.

    Returns:
      ``devices``, ``step`` (devices to a row), for each side the cells that are not 0 as ``[row, column, bytes]``, and
      ``classes``: collectives of one kind over the same groups, with executed bytes of both sides. None when nothing
      is sent, or when there are more than ``MOST_DEVICES``.
    """
    devices = max(before.devices, after.devices)
    if devices < 2 or devices > MOST_DEVICES or not (before.collectives or after.collectives):
        return None
    step = -(-devices // MOST_CELLS)
    sides = [_cells(side.collectives, devices, step) for side in (before, after)]
    return {"devices": devices, "step": step, "before": sides[0], "after": sides[1],
            "classes": _classes(before.collectives, after.collectives)}


def _cells(collectives: Iterable[CollectiveRow], devices: int, step: int) -> list[list[int]]:
    import numpy as np
    transfers = [CollectiveTraffic(one.kind, one.payload_bytes, one.groups, one.trips)
                 for one in _merged(collectives) if one.kind in KINDS]
    matrix = traffic_matrix(transfers, devices)
    if step > 1:
        rows = -(-devices // step)
        wide = np.zeros((rows * step, rows * step))
        wide[:devices, :devices] = matrix
        matrix = wide.reshape(rows, step, rows, step).sum(axis=(1, 3))
    return [[int(i), int(j), round(float(matrix[i, j]))] for i, j in np.argwhere(matrix > 0)]


def _merged(collectives: Iterable[CollectiveRow]) -> list[CollectiveRow]:
    """One for all of equal kind and groups: traffic is linear in bytes, and there may be thousands."""
    from dataclasses import replace
    merged: dict[tuple[str, Groups], CollectiveRow] = {}
    for one in collectives:
        known = merged.get((one.kind, one.groups))
        size = one.executed_bytes + (known.payload_bytes if known else 0)
        merged[one.kind, one.groups] = replace(one, payload_bytes=size, trips=1)
    return list(merged.values())


def _classes(before: Iterable[CollectiveRow], after: Iterable[CollectiveRow]) -> list[dict[str, Any]]:
    classes: dict[tuple[str, Groups], dict[str, Any]] = {}
    for number, side in enumerate((before, after)):
        for one in side:
            entry = classes.setdefault((one.kind, one.groups), {
                "kind": one.kind, "axes": list(one.axes), "groups": [list(group) for group in one.groups],
                "bytes": [0, 0], "calls": [0, 0]})
            entry["bytes"][number] += one.executed_bytes
            entry["calls"][number] += one.trips
    return list(classes.values())
