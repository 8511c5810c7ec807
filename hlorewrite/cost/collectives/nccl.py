"""NCCL's own tuning model: the time of one collective by algorithm and protocol, and its choice among them.

Source of formulas and constants: NVIDIA/nccl 2.30.7 ``src/graph/tuning.cc``. With n ranks on N hosts,
ring all-reduce takes 2(n-1) steps, reduce-scatter and all-gather n-1, broadcast n; a byte costs
steps / (n * bus bandwidth); each step adds the latency of the link it crosses. NVLS lets the switch reduce,
so that each byte crosses a link once each way. All functions work on NumPy arrays element by element.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.collectives.placement import RankPlacement
from hlorewrite.ir.collectives import ALL_REDUCE, COLLECTIVE_BROADCAST

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

PROTOCOLS = ("ll", "ll128", "simple")
MIB = float(1 << 20)


@functools.cache
def constants() -> Mapping[str, Any]:
    """NCCL's constants, as in ``data/nccl.toml``."""
    return tomllib.loads((Path(__file__).parent.parent / "data" / "nccl.toml").read_text(encoding="utf-8"))


def _by_nodes(table: str, topo: Topology, hosts: Array) -> Array:
    """A bandwidth table's entry for 1, 2 or more hosts."""
    import numpy as np
    row = np.asarray(constants()[table][topo.architecture])
    return row[np.where(hosts <= 1, 0, np.where(hosts <= 2, 1, 2))]


def _hop_us(topo: Topology, algorithm: str, protocol: int) -> tuple[float, float]:
    """Latency of one hop within a host, and between hosts."""
    table = constants()["hop_latency_us"]
    wire = topo.inter_latency_s * 1e6 * (2 if PROTOCOLS[protocol] == "simple" else 1)
    return table[topo.intra_kind][algorithm][protocol], table["net"][algorithm][protocol] + wire


def _bus_gb_s(place: RankPlacement, between: Array) -> Array:
    """Bus bandwidth of all channels: what links and, given the rate between hosts, NICs allow."""
    import numpy as np
    ring = place.intra_gb_s * constants()["graph"]["ring_share"]
    # Crossing hosts, a ring of r ranks a host uses the links between them r/(r-1) times less than the NICs.
    several = np.maximum(place.ranks_per_host - 1, 1) / np.maximum(place.ranks_per_host, 1)
    within = np.where(place.ranks_per_host > 1, ring / several, np.inf)
    return np.where(place.hosts > 1, np.minimum(within, between), ring)


def _steps(kind: str, ranks: Array) -> Array:
    if kind == ALL_REDUCE.kind:
        return 2 * (ranks - 1)
    return ranks if kind == COLLECTIVE_BROADCAST.kind else ranks - 1


def ring_us(kind: str, size: Array, place: RankPlacement, topo: Topology, protocol: int) -> tuple[Array, Array]:
    """Ring: (latency, transfer) in microseconds, for one protocol.

    Args:
      kind: all-reduce, all-gather, reduce-scatter or collective-broadcast.
      size: bytes of the larger of operand and result.
      place: where the ranks are.
      topo: the cluster.
      protocol: index into ``PROTOCOLS``.

    Returns:
      Latency and transfer time, arrays of the shape of ``size``.
    """
    import numpy as np
    data = constants()
    bus = _bus_gb_s(place, place.inter_gb_s)
    channels = data["graph"]["channels"][topo.architecture]
    if protocol == 0:
        bus = np.minimum(_by_nodes("ll_max_gb_s", topo, place.hosts), 0.5 * bus)
    elif protocol == 1:
        bus = np.minimum(0.92 * bus, channels * _by_nodes("ring_ll128_gb_s_per_channel", topo, place.hosts))
    steps = _steps(kind, place.ranks)
    crossing = np.where(place.hosts > 1, (place.hosts - 1) * (2 if kind == ALL_REDUCE.kind else 1), 0)
    near, far = _hop_us(topo, "ring", protocol)
    latency = data["base_latency_us"]["ring"][protocol] + (steps - crossing) * near + crossing * far
    return latency, size * steps / (place.ranks * bus * 1e3)


def tree_us(size: Array, place: RankPlacement, topo: Topology, protocol: int) -> tuple[Array, Array]:
    """Double binary tree all-reduce: (latency, transfer) in microseconds, for one protocol."""
    import numpy as np
    data = constants()
    # Two hosts are each other's parent in one of the two trees: half as many bytes leave a host as with more hosts.
    bus = _bus_gb_s(place, place.inter_gb_s * np.where(place.hosts <= 2, 2.0, 1.0))
    channels = data["graph"]["channels"][topo.architecture]
    if protocol == 0:
        bus = np.minimum(bus / 3.8, _by_nodes("ll_max_gb_s", topo, place.hosts))
    elif protocol == 1:
        share = np.where(place.hosts <= 1, 7 / 9, 120 / 128)
        bus = np.minimum(share * bus, channels * _by_nodes("tree_ll128_gb_s_per_channel", topo, place.hosts))
    else:
        bus = np.minimum(0.92 * bus, channels * _by_nodes("tree_gb_s_per_channel", topo, place.hosts))
    correction = np.asarray(data["tree_correction"][PROTOCOLS[protocol]], dtype=float)
    step = np.log2(np.maximum(size / 64, 1)).astype(int)
    bus = bus * np.where(step < 23, correction[np.minimum(step, 22)], 1.0)
    near, far = _hop_us(topo, "tree", protocol)
    depth = 2 * ((place.ranks_per_host - 1) * near + np.log2(place.hosts) * far)
    return data["base_latency_us"]["tree"][protocol] + depth, size / (0.5 * bus * 1e3)


def nvls_us(kind: str, size: Array, place: RankPlacement, topo: Topology) -> tuple[Array, Array]:
    """In-switch reduction and multicast, with a tree between hosts: (latency, transfer) in microseconds."""
    import numpy as np
    data, graph = constants(), constants()["graph"]
    channels = graph["nvls_channels"][topo.architecture]
    gain = 2.0 if kind == ALL_REDUCE.kind else (place.ranks_per_host - 1) / place.ranks_per_host
    within = place.intra_gb_s * graph["nvls_share"] * graph["nvls_efficiency"][topo.architecture]
    within = within * (channels - 1) / channels * gain
    between = place.inter_gb_s * np.where(place.hosts <= 2, 2.0, 1.0) if kind == ALL_REDUCE.kind else place.inter_gb_s
    if topo.sharp:  # the network reduces too: NCCL counts its NICs once, and gains latency
        between = place.inter_gb_s
    bus = np.where(place.hosts > 1, np.minimum(within, between), within)
    waits = data["switch_latency_us"]
    wire = topo.inter_latency_s * 2e6
    hops = np.where(place.hosts > 1, 2 * np.log2(place.hosts) * (waits["nvls_tree_net"] + wire), 0.0)
    if topo.sharp:
        hops = np.where(place.hosts > 1, waits["nvls_net"] + wire, 0.0)
    # NCCL's steps for 8 ranks on one host are the bus bandwidth's own yardstick: a byte crosses once each way.
    return waits["nvls"] + hops, size * _steps(kind, place.ranks) / (place.ranks * bus * 1e3)


def nccl_us(kind: str, size: Array, place: RankPlacement, topo: Topology) -> tuple[Array, Array, Array]:
    """NCCL's choice: the fastest algorithm and protocol by its own model.

    Args:
      kind: all-reduce, all-gather, reduce-scatter or collective-broadcast.
      size: bytes of the larger of operand and result, per device.
      place: where the ranks are.
      topo: the cluster.

    Returns:
      (latency in us, transfer in us, index into :func:`choices`), arrays of the shape of ``size``.
    """
    import numpy as np
    choices = [ring_us(kind, size, place, topo, protocol) for protocol in range(3)]
    if kind == ALL_REDUCE.kind:
        trees = [tree_us(size, place, topo, protocol) for protocol in range(3)]
        # Within a host NCCL's tree is a chain; its tuning never prefers it to the ring at size.
        choices += [(np.where(place.hosts > 1, latency, np.inf), transfer) for latency, transfer in trees]
        if topo.nvls:
            latency, transfer = nvls_us(kind, size, place, topo)
            choices.append((np.where(place.ranks_per_host > 2, latency, np.inf), transfer))
    latency = np.stack([np.broadcast_to(pair[0], np.shape(size)) for pair in choices])
    transfer = np.stack([np.broadcast_to(pair[1], np.shape(size)) for pair in choices])
    best = np.argmin(latency + transfer, axis=0)
    take = np.expand_dims(best, 0)
    return (np.take_along_axis(latency, take, 0)[0], np.take_along_axis(transfer, take, 0)[0], best)


def choices(kind: str) -> list[tuple[str, str]]:
    """(algorithm, protocol) in the order :func:`nccl_us` indexes.

    Example:
      >>> choices("all-gather")
      [('ring', 'll'), ('ring', 'll128'), ('ring', 'simple')]
    """
    rings = [("ring", protocol) for protocol in PROTOCOLS]
    if kind != ALL_REDUCE.kind:
        return rings
    return [*rings, *(("tree", protocol) for protocol in PROTOCOLS), ("nvls", "simple")]
