"""Unit tasks: one slice, the devices that have it, the devices that want it.

The decomposition is that of "On Optimizing the Communication of Model Parallelism" (MLSys 2023), section 2:
the unit tasks are the non-empty intersections of a source tile with a destination tile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hlorewrite.errors import UsageError
from hlorewrite.pipelines.reshard.layout import Layout


@dataclass(frozen=True)
class UnitTasks:
    """All unit tasks of a resharding, as arrays; task order is (destination tile, source tile).

    Args:
      source: layout the tensor has.
      destination: layout it is to have.
      start: first index of each slice, shape ``[tasks, rank]``.
      stop: one past its last index, shape ``[tasks, rank]``.
      source_tile: tile of the source it is in, shape ``[tasks]``: its candidate senders are
        ``source.devices[source_tile]``.
      destination_tile: tile of the destination it is in, shape ``[tasks]``.
    """

    source: Layout
    destination: Layout
    start: np.ndarray
    stop: np.ndarray
    source_tile: np.ndarray
    destination_tile: np.ndarray

    def __len__(self) -> int:
        return len(self.source_tile)

    @cached_property
    def elements(self) -> np.ndarray:
        """Number of elements of each slice, shape ``[tasks]``."""
        out = np.ones(len(self), np.int64)
        for dim in range(self.start.shape[1]):
            out *= self.stop[:, dim] - self.start[:, dim]
        return out

    def split(self, pieces: int) -> UnitTasks:
        """The same tasks, each cut into ``pieces`` along its longest dimension if it is long enough."""
        return self.cut(np.arange(1, pieces) / pieces)

    def cut(self, places: Sequence[float] | np.ndarray) -> UnitTasks:
        """The same tasks, each cut at some fractions of its longest dimension; empty parts are left out."""
        if not len(places) or not len(self) or not self.start.shape[1]:
            return self
        dim = np.argmax(self.stop - self.start, axis=1)
        each = np.arange(len(self))
        low, high = self.start[each, dim], self.stop[each, dim]
        # The small addend keeps k / n * n from becoming less than k.
        edges = np.floor(np.array([0, *places, 1.0]) * (high - low)[:, None] + 1e-9).astype(np.int64) + low[:, None]
        keep = np.flatnonzero((edges[:, 1:] > edges[:, :-1]).ravel())
        row = keep // (len(places) + 1)
        start, stop, part = self.start[row], self.stop[row], np.arange(len(row))
        start[part, dim[row]], stop[part, dim[row]] = edges[:, :-1].ravel()[keep], edges[:, 1:].ravel()[keep]
        return UnitTasks(self.source, self.destination, start, stop, self.source_tile[row],
                         self.destination_tile[row])


def unit_tasks(source: Layout, destination: Layout) -> UnitTasks:
    """Decomposes a resharding into unit tasks.

    Args:
      source: layout the tensor has.
      destination: layout it is to have; same shape.

    Returns:
      The tasks; none when the tensor is empty. Slices that a receiver already has are included.

    Raises:
      UsageError: the shapes differ.

    Example:
      >>> from hlorewrite.pipelines.reshard.layout import sharded
      >>> from hlorewrite.pipelines.reshard.layout import parse_mesh
      >>> tasks = unit_tasks(sharded((6, 2), parse_mesh("2x1"), (("host",),)),
      ...                    sharded((6, 2), parse_mesh("3x1", 2), (("host",),)))
      >>> tasks.start[:, 0].tolist(), tasks.stop[:, 0].tolist()
      ([0, 2, 3, 4], [2, 3, 4, 6])
      >>> tasks.source_tile.tolist(), tasks.destination_tile.tolist()
      ([0, 0, 1, 1], [0, 1, 1, 2])
    """
    if source.shape != destination.shape:
        raise UsageError(f"the source has shape {list(source.shape)}, but the destination has "
                         f"{list(destination.shape)}", hint="resharding keeps the shape")
    pieces = [_segments(a, b) for a, b in zip(source.cuts, destination.cuts, strict=True)]
    counts = tuple(len(piece[0]) for piece in pieces)
    total, rank = math.prod(counts), len(counts)
    # Everything is an outer sum over the dimensions: broadcasting fills the arrays, nothing is gathered.
    axis = [(1,) * dim + (-1,) + (1,) * (rank - dim - 1) for dim in range(rank)]
    source_tile, destination_tile = np.zeros(counts, np.int64), np.zeros(counts, np.int64)
    start, stop = np.empty((rank, *counts), np.int64), np.empty((rank, *counts), np.int64)
    for dim, (lo, hi, from_tile, to_tile) in enumerate(pieces):
        start[dim], stop[dim] = lo.reshape(axis[dim]), hi.reshape(axis[dim])
        source_tile += from_tile.reshape(axis[dim]) * math.prod(source.grid[dim + 1:])
        destination_tile += to_tile.reshape(axis[dim]) * math.prod(destination.grid[dim + 1:])
    key = (destination_tile * len(source.devices) + source_tile).reshape(total)
    columns = [source_tile.reshape(total), destination_tile.reshape(total)]
    boxes = [start.reshape(rank, total), stop.reshape(rank, total)]
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        columns, boxes = [column[order] for column in columns], [box[:, order] for box in boxes]
    return UnitTasks(source, destination, boxes[0].T, boxes[1].T, *columns)


def _segments(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Common refinement of two cuts of a dimension: starts, stops, and the tile of each cut they are in."""
    edges = np.unique(np.concatenate([a, b]))
    lo, hi = edges[:-1], edges[1:]
    # side="right" steps over empty tiles: of equal cuts the last one starts the non-empty tile.
    return lo, hi, np.searchsorted(a, lo, "right") - 1, np.searchsorted(b, lo, "right") - 1
