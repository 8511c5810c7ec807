"""Measured time curves of a topology: made monotone, interpolated in size and in group size."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hlorewrite.cost.cluster.topology import Topology

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

Curve = tuple[tuple[float, float], ...]  # (bytes, seconds), by size


def curves_of(topology: Topology, kind: str) -> Mapping[tuple[int, int], Curve]:
    """The curves of one kind: (hosts, ranks per host) -> points.

    Args:
      topology: the cluster.
      kind: the collective.

    Returns:
      A mapping, empty when nothing was measured.
    """
    return _curves_of(topology, kind)


@functools.lru_cache(maxsize=256)
def _curves_of(topology: Topology, kind: str) -> Mapping[tuple[int, int], Curve]:
    prefix = kind + "-"
    curves = {}
    for name, points in topology.curves.items():
        if name.startswith(prefix):
            hosts, _, per_host = name.removeprefix(prefix).partition("x")
            curves[int(hosts), int(per_host)] = monotone(points)
    return curves


@functools.lru_cache(maxsize=256)
def monotone(points: Curve) -> Curve:
    """Isotonic median regression over size: pools neighbours until time never falls with size.

    A pool's time is the median of its members, so that one slow first call does not lift its neighbours.

    Args:
      points: (bytes, seconds), by size.

    Returns:
      The same sizes with non-decreasing times.

    Example:
      >>> [time for _, time in monotone(((1.0, 9.0), (2.0, 2.0), (4.0, 2.0), (8.0, 7.0)))]
      [2.0, 2.0, 2.0, 7.0]
    """
    import statistics
    pools: list[list[float]] = []
    for _, time in points:
        pools.append([time])
        # Ends: each round joins two pools.
        while len(pools) > 1 and statistics.median(pools[-2]) > statistics.median(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    level = [statistics.median(pool) for pool in pools for _ in pool]
    return tuple((size, time) for (size, _), time in zip(points, level, strict=True))


def at_sizes(curve: Curve, sizes: Array) -> Array:
    """A curve at any size: linear in log-log between its points, flat below them, along the last slope above them.

    Args:
      curve: (bytes, seconds), by size, at least two points.
      sizes: bytes, shape (cases,).

    Returns:
      Seconds, shape (cases,).
    """
    import numpy as np
    x, y = np.asarray(curve, dtype=float).T
    inside = np.exp(np.interp(np.log(np.maximum(sizes, 1.0)), np.log(x), np.log(y)))
    slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
    return np.where(sizes > x[-1], y[-1] + slope * (sizes - x[-1]), inside)


def curve_time(measured: Mapping[tuple[int, int], Curve], hosts: int, per_host: int,
               sizes: Array) -> Array | None:
    """Times from the curves of one kind, for one group shape.

    Args:
      measured: (hosts, ranks per host) -> curve.
      hosts: hosts a group spans.
      per_host: its ranks on each.
      sizes: payload bytes, shape (cases,).

    Returns:
      Seconds, shape (cases,), or None when no curve and no pair of neighbours covers the shape.
    """
    if (hosts, per_host) in measured:
        return at_sizes(measured[hosts, per_host], sizes)
    if hosts > 1:
        return None
    known: Sequence[int] = sorted(count for at, count in measured if at == 1)
    below = [count for count in known if count < per_host]
    above = [count for count in known if count > per_host]
    if not (below and above):
        return None
    low, high = below[-1], above[0]
    share = (per_host - low) / (high - low)
    return (1 - share) * at_sizes(measured[1, low], sizes) + share * at_sizes(measured[1, high], sizes)
