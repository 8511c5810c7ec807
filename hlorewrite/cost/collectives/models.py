"""Times of collectives on a topology: measured curves if there are any, otherwise NCCL's tuning model.

    time = launch + latency + transfer / efficiency + ramp * bytes / (bytes + ramp bytes)

Latency and transfer are NCCL's own (:mod:`hlorewrite.cost.collectives.nccl`). Launch is what the runtime adds to each
call; ramp is the time pipelines need to fill, which NCCL's model leaves out; efficiency is the share of NCCL's
asymptote that is reached, less in small groups, which drive fewer channels: ``e * (1 - loss / ranks**2)``.
The constants' defaults and where they come from are in ``data/collectives.toml``; a topology may override any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.collective_kinds import check_kind, default_constants
from hlorewrite.cost.collectives.nccl import constants
from hlorewrite.cost.collectives.placement import RankPlacement
from hlorewrite.errors import UsageError
from hlorewrite.ir.collectives import ALL_REDUCE, ALL_TO_ALL, BY_KIND, COLLECTIVE_BROADCAST, COLLECTIVE_PERMUTE

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


@runtime_checkable
class CollectiveModel(Protocol):
    """The model of a cluster that passes need: the seconds that one collective takes."""

    def collective_time(self, kind: str, payload_bytes: int, groups: Sequence[Sequence[int]]) -> float:
        """Seconds of one collective that all groups run at the same time.

        Args:
          kind: one of ``KINDS``.
          payload_bytes: the larger of operand and result, in bytes of one device: the operand of
            all-reduce, reduce-scatter, all-to-all, permute and broadcast, the result of all-gather.
          groups: device numbers of each group; for collective-permute one [source, target] each.

        Returns:
          Seconds; 0 when no group has two members.
        """
        ...


@dataclass(frozen=True)
class NcclModel:
    """Collective times from NCCL's tuning model and a few calibrated constants.

    Args:
      topology: the cluster.

    Example:
      >>> from hlorewrite.cost import topology
      >>> model = NcclModel(topology("h100:1x8"))
      >>> round(model.collective_time("all-gather", 1 << 30, [list(range(8))]) * 1e3, 1)
      2.7
    """

    topology: Topology

    def constant(self, name: str) -> float:
        """One calibrated constant: the topology's own, or the default."""
        constant = self.topology.collectives.get(name)
        return default_constants()[name] if constant is None else constant

    def collective_time(self, kind: str, payload_bytes: int, groups: Sequence[Sequence[int]]) -> float:
        """Seconds of one collective; see :class:`CollectiveModel`."""
        check_kind(kind)
        if payload_bytes < 0:
            raise UsageError(f"a payload of {payload_bytes} bytes", hint="sizes are not negative")
        from hlorewrite.cost.collectives.placement import distinct_placements
        places = distinct_placements(self.topology, kind, groups)
        if places is None:
            return 0.0
        import numpy as np
        sizes = np.full(len(places.ranks), float(payload_bytes))
        return float(np.max(self.times(kind, sizes, places)))

    def times(self, kind: str, sizes: Array, place: RankPlacement) -> Array:
        """Seconds of many collectives of one kind at once.

        Args:
          kind: one of ``KINDS``.
          sizes: payload bytes, shape (cases,).
          place: where the ranks of each case are; arrays of shape (cases,).

        Returns:
          Seconds, shape (cases,); 0 if there is one rank.
        """
        import numpy as np

        from hlorewrite.cost.collectives import nccl
        if BY_KIND[kind].pairwise:
            latency, transfer = exchange_us(kind, sizes, place, self.topology)
        else:
            latency, transfer, _ = nccl.nccl_us(kind, sizes, place, self.topology)
        name = kind.replace("-", "_")
        efficiency = self.constant(f"{name}_efficiency") * (
            1 - self.constant(f"{name}_small_group_loss") / np.maximum(place.ranks, 2) ** 2)
        within = place.hosts <= 1
        # Between hosts the NICs limit, whatever number of channels a group drives.
        transfer = np.where(within, transfer / efficiency, transfer)
        ramp_s = np.where(within, self.constant("ramp_s"), self.constant("inter_ramp_s"))
        ramp_bytes = np.where(within, self.constant("ramp_bytes"), self.constant("inter_ramp_bytes"))
        ramp = ramp_s * sizes / (sizes + ramp_bytes)
        if kind not in (ALL_REDUCE.kind, ALL_TO_ALL.kind):
            ramp = np.where(within, self.constant("one_way_ramp_share") * ramp, ramp)
        total = self.constant("launch_s") + (latency + transfer) * 1e-6 + ramp
        if self.constant("rack_ring_bytes_per_s") and np.any(place.hosts > 1):
            total = np.where(place.hosts > 1, between_racks(self, kind, sizes, place, total), total)
        return np.where(place.ranks > 1, total, 0.0)

    def choice(self, kind: str, payload_bytes: int, groups: Sequence[Sequence[int]]) -> tuple[str, str]:
        """NCCL's (algorithm, protocol) for a collective; ("p2p", "simple") for exchanges."""
        check_kind(kind)
        if BY_KIND[kind].pairwise:
            return "p2p", "simple"
        import numpy as np

        from hlorewrite.cost.collectives import nccl
        from hlorewrite.cost.collectives.placement import distinct_placements
        places = distinct_placements(self.topology, kind, groups)
        if places is None:
            return "none", "none"
        latency, transfer, best = nccl.nccl_us(
            kind, np.full(len(places.ranks), float(payload_bytes)), places, self.topology)
        slowest = int(np.argmax(latency + transfer))
        return nccl.choices(kind)[int(best[slowest])]


@dataclass(frozen=True)
class CurveModel(NcclModel):
    """Measured times if the topology has a curve for the group's shape, otherwise those of :class:`NcclModel`.

    A curve is made monotone (isotonic median regression) and interpolated linearly in log size and
    log time; group sizes between two measured ones on one host are interpolated too.

    Example:
      >>> from hlorewrite.cost import topology
      >>> model = CurveModel(topology("h200:1x8"))
      >>> 2e-3 < model.collective_time("all-reduce", 1 << 29, [list(range(8))]) < 2.2e-3
      True
    """

    def times(self, kind: str, sizes: Array, place: RankPlacement) -> Array:
        """Seconds of many collectives of one kind; see :meth:`NcclModel.times`."""
        import numpy as np

        from hlorewrite.cost.collectives import curves
        measured = curves.curves_of(self.topology, kind)
        if not measured:
            return super().times(kind, sizes, place)
        sizes = np.broadcast_to(sizes, np.shape(place.ranks))
        seconds = np.full(sizes.shape, np.nan)
        shapes = np.stack([place.hosts, place.ranks_per_host, place.ranks], axis=-1)
        for shape in np.unique(shapes, axis=0):
            hosts, per_host, ranks = (int(part) for part in shape)
            if ranks < 2 or ranks != hosts * per_host:
                continue
            if hosts > 1 and per_host != self.topology.gpus_per_host:
                continue
            where = np.all(shapes == shape, axis=-1)
            time = curves.curve_time(measured, hosts, per_host, sizes[where])
            if time is not None:
                seconds[where] = time
        rest = np.isnan(seconds)
        if rest.any():
            parts = (np.broadcast_to(getattr(place, name), sizes.shape)[rest] for name in RankPlacement.__slots__)
            seconds[rest] = super().times(kind, sizes[rest], RankPlacement(*parts))
        return seconds


def collective_model(topology: Topology) -> CurveModel | NcclModel:
    """The best model of a topology's collectives.

    Args:
      topology: the cluster.

    Returns:
      A :class:`CollectiveModel` with the vectorised ``times`` next to it.

    Example:
      >>> from hlorewrite.cost import topology
      >>> model = collective_model(topology("h100:4x8"))
      >>> isinstance(model, CollectiveModel)
      True
      >>> model.collective_time("all-reduce", 1 << 20, [[0]])
      0.0
    """
    return CurveModel(topology) if topology.curves else NcclModel(topology)


# ---- all-to-all and permute: each rank sends to others directly, over its own link and NIC


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
      place: where the ranks are; for a permute, the devices a chain of pairs connects.
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


# ---- collectives between racks: hosts that are NVLink domains of many GPUs

# All-reduces of CoreWeave's GB200 clusters say how: over two racks the time inside a rack and that of the bytes through
# its NICs add up, over twenty a ring of all GPUs takes 2(n-1) steps. Constants are in the topology's section
# ``[collectives]``.


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


# ---- waiting for late ranks: the time that an exposed collective takes in addition to its own

# Ranks reach a collective at different times, and it ends after the last. Each is late by an exponential law of mean
# ``arrival_s`` (``data/collectives.toml``); of n ranks the last is late by H_n = 1 + 1/2 + ... + 1/n of it on average.


@dataclass(frozen=True, slots=True)
class ArrivalWait:
    """Seconds that a call waits for its last rank.

    Args:
      mean: the average.
      low: 10 of 100 calls wait less.
      high: 10 of 100 calls wait longer.
    """

    mean: float
    low: float
    high: float


def waiting_for_ranks(ranks: int, late_s: float | None = None) -> ArrivalWait:
    """How long an exposed collective waits for its last rank.

    Args:
      ranks: ranks of a group.
      late_s: how late a rank is on average; None is the shipped constant.

    Raises:
      UsageError: there is no rank, or a rank is early on average.

    Example:
      >>> waiting_for_ranks(1).mean < waiting_for_ranks(8).mean < waiting_for_ranks(64).mean
      True
      >>> 2e-3 < waiting_for_ranks(64).low < waiting_for_ranks(64).mean < waiting_for_ranks(64).high
      True
    """
    late = default_constants()["arrival_s"] if late_s is None else late_s
    if ranks < 1 or late < 0:
        raise UsageError(f"{ranks} ranks, {late} s late", hint="use at least one rank, and a lateness of 0 or more")
    if ranks == 1:
        return ArrivalWait(0.0, 0.0, 0.0)
    harmonic = math.log(ranks) + 0.5772156649 + 0.5 / ranks if ranks > 64 else sum(1 / k for k in range(1, ranks + 1))
    low, high = (-late * math.log(-math.expm1(math.log(share) / ranks)) for share in (0.1, 0.9))
    return ArrivalWait(late * harmonic, low, high)
