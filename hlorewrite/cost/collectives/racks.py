"""Collectives between racks: hosts that are NVLink domains of many GPUs.

All-reduces of CoreWeave's GB200 clusters say how: over two racks the time inside a rack and that of the bytes through
its NICs add up, over twenty a ring of all GPUs takes 2(n-1) steps. Constants are in the topology's section
``[collectives]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from hlorewrite.cost.collectives.placement import RankPlacement
from hlorewrite.ir.collectives import ALL_REDUCE, BY_KIND, COLLECTIVE_BROADCAST

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


class RackTimes(Protocol):
    """What a model of collectives must provide."""

    def constant(self, name: str) -> float:
        """A calibrated constant."""
        ...

    def times(self, kind: str, sizes: Any, place: RankPlacement) -> Any:
        """Seconds of many collectives."""
        ...


def between_racks(model: RackTimes, kind: str, sizes: Array, place: RankPlacement, flat: Array) -> Array:
    """Seconds of collectives that cross racks; more racks never take less.

    Args:
      model: the model of collectives, for the time inside a rack.
      kind: one of ``KINDS``.
      sizes: payload bytes, shape (cases,).
      place: where the ranks are, arrays of shape (cases,).
      flat: seconds by NCCL's own model, which has none for racks.

    Returns:
      Seconds, shape (cases,).
    """
    import numpy as np
    one = np.ones_like(place.ranks)
    inside = model.times(kind, sizes, RankPlacement(place.ranks_per_host, one, place.ranks_per_host, place.intra_gb_s,
                                                    place.inter_gb_s))
    if BY_KIND[kind].pairwise:
        return np.maximum(flat, inside)
    two = np.maximum(flat, inside)
    if kind == ALL_REDUCE.kind:
        two = np.maximum(two, inside + sizes / (place.inter_gb_s * 1e9) + model.constant("rack_hop_s"))
    rate = np.minimum(model.constant("rack_ring_bytes_per_s"), place.inter_gb_s * 1e9)
    steps = {ALL_REDUCE.kind: 2 * (place.ranks - 1), COLLECTIVE_BROADCAST.kind: place.ranks}.get(kind, place.ranks - 1)
    ring = steps * (model.constant("rack_ring_step_s") + sizes / place.ranks / rate)
    ring = ring * sizes / (sizes + model.constant("rack_ring_bytes"))  # small ones take a tree
    return np.where(place.hosts > 2, np.maximum(two, ring), two)
