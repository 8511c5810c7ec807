"""All-to-all and permute: each rank sends to others directly, over its own link and NIC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.collectives.nccl import constants
from hlorewrite.cost.collectives.placement import RankPlacement
from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

# NCCL gives one peer few channels until a message is large, and all of them after it. Measured by XLA on Hopper
# and Blackwell servers: about 0.3 of the link up to 64 MiB, the rest of it from then on.
FEW_CHANNELS_SHARE = 0.3
FEW_CHANNELS_SHARE_IN_A_CHAIN = 0.2  # where GPUs send to one peer and receive from another
FEW_CHANNELS_BYTES = 64 * 2.0**20
ONE_PEER_SHARE = 0.79


def exchange_us(kind: str, size: Array, place: RankPlacement, topo: Topology) -> tuple[Array, Array]:
    """(latency, transfer) in microseconds of an all-to-all or a permute.

    Args:
      kind: all-to-all or collective-permute.
      size: bytes of the operand, per device.
      place: where the ranks stand; for a permute, the devices a chain of pairs connects.
      topo: the cluster.

    Returns:
      Latency and transfer time, arrays of the shape of ``size``.
    """
    import numpy as np
    table = constants()["hop_latency_us"]
    near = table[topo.intra_kind]["ring"][2]
    far = table["net"]["ring"][2] + 2e6 * topo.inter_latency_s
    latency = constants()["base_latency_us"]["ring"][2] + np.where(place.hosts > 1, far, near)
    if kind == COLLECTIVE_PERMUTE.kind:
        share = np.where(place.ranks > 2, FEW_CHANNELS_SHARE_IN_A_CHAIN, FEW_CHANNELS_SHARE)
        few = np.minimum(size, FEW_CHANNELS_BYTES) / (share * place.intra_gb_s * 1e3)
        link = np.maximum(few, size / (ONE_PEER_SHARE * place.intra_gb_s * 1e3))
        link = np.where(place.ranks_per_host > 1, link, 0.0)
        return latency, np.where(place.hosts > 1, np.maximum(link, size / (place.inter_gb_s * 1e3)), link)
    # Each rank keeps 1/n, sends (r-1)/n inside its host and (n-r)/n out of it; both go on at the same time.
    inside = size * (place.ranks_per_host - 1) / place.ranks / (place.intra_gb_s * 1e3)
    outside = size * (place.ranks - place.ranks_per_host) / place.ranks
    outside = outside * place.ranks_per_host / (place.inter_gb_s * 1e3)
    return latency, np.where(place.hosts > 1, np.maximum(inside, outside), inside)
