"""Clusters: hosts, GPUs, links, network ports, peaks and memory.

All rates are bytes/s in **one direction** of one GPU or one NIC, at the line rate; the share of it that
protocols sustain is next to it as an efficiency. GPUs are numbered host by host: GPU ``g`` is GPU
``g % gpus_per_host`` of host ``g // gpus_per_host``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from hlorewrite.errors import UsageError

ARCHITECTURES = ("volta", "ampere", "hopper", "blackwell")
LINK_KINDS = ("nvlink", "pcie")
NETWORK_KINDS = ("infiniband", "roce", "efa", "tcp")


@dataclass(frozen=True, slots=True)
class Topology:
    """A cluster of equal hosts.

    Args:
        name: name of the server, as in ``NAME:HOSTSxGPUS``.
        hosts: number of hosts.
        gpus_per_host: GPUs used on each host.
        gpu: the GPU's model name.
        architecture: ``volta``, ``ampere``, ``hopper`` or ``blackwell``: selects NCCL's constants.
        memory_bytes: memory of one GPU.
        memory_bytes_per_s: memory bandwidth of one GPU.
        peak_flops: peak FLOP/s of one GPU by dtype (``bf16``, ``f16``, ``f32``, ...), dense.
        intra_kind: ``nvlink`` or ``pcie``.
        intra_bytes_per_s: line rate from one GPU into its host's fabric, one direction.
        intra_efficiency: share of that rate which NCCL sustains.
        intra_latency_s: one hop between two GPUs of a host.
        switched: whether a switch gives each GPU its whole rate to any peer.
        nvls: whether the switch can reduce and multicast (NVLink SHARP).
        inter_kind: ``infiniband``, ``roce``, ``efa`` or ``tcp``.
        nics_per_host: network ports of a whole server.
        nic_bytes_per_s: line rate of one port, one direction.
        nic_efficiency: share of that rate which NCCL sustains.
        inter_latency_s: one way between two hosts.
        sharp: whether network switches reduce.
        server_gpus: GPUs a whole server has; at least ``gpus_per_host``.
        collectives: calibrated constants of the collective model, by name; empty means the defaults
            of the architecture.
        curves: measured (bytes, seconds) points by ``KIND-HOSTSxRANKS``, ranks per host.

    Example:
        >>> from hlorewrite.cost import topology
        >>> cluster = topology("h200:4x8")
        >>> cluster.gpus, cluster.host_of(9), cluster.nic_of(9)
        (32, 1, 9)
    """

    name: str
    hosts: int
    gpus_per_host: int
    gpu: str
    architecture: str
    memory_bytes: float
    memory_bytes_per_s: float
    peak_flops: Mapping[str, float] = field(hash=False, repr=False)
    intra_kind: str
    intra_bytes_per_s: float
    intra_efficiency: float
    intra_latency_s: float
    switched: bool
    nvls: bool
    inter_kind: str
    nics_per_host: int
    nic_bytes_per_s: float
    nic_efficiency: float
    inter_latency_s: float
    sharp: bool
    server_gpus: int
    collectives: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), hash=False, repr=False)
    curves: Mapping[str, tuple[tuple[float, float], ...]] = field(
        default_factory=lambda: MappingProxyType({}), hash=False, repr=False)

    @property
    def gpus(self) -> int:
        """Number of GPUs of the cluster."""
        return self.hosts * self.gpus_per_host

    @property
    def intra_sustained_bytes_per_s(self) -> float:
        """Bytes/s per direction that one GPU sustains to the GPUs of its host."""
        return self.intra_bytes_per_s * self.intra_efficiency

    @property
    def nic_sustained_bytes_per_s(self) -> float:
        """Bytes/s per direction that one NIC sustains."""
        return self.nic_bytes_per_s * self.nic_efficiency

    def host_of(self, gpu: int) -> int:
        """The host a GPU is in.

        Args:
            gpu: GPU number, from 0.

        Returns:
            The host's number.

        Raises:
            UsageError: there is no such GPU.

        Example:
            >>> from hlorewrite.cost import topology
            >>> topology("h200:2x8").host_of(8)
            1
        """
        if not 0 <= gpu < self.gpus:
            raise UsageError(f"GPU {gpu} is not one of the {self.gpus} of {self.spec}",
                             hint=f"use 0 to {self.gpus - 1}")
        return gpu // self.gpus_per_host

    def nic_of(self, gpu: int) -> int:
        """The NIC nearest to a GPU; a server's GPUs share its NICs evenly, in order.

        Args:
            gpu: GPU number, from 0.

        Returns:
            The NIC's number in the cluster: ``host * nics_per_host + NIC of the host``.

        Example:
            >>> from hlorewrite.cost import topology
            >>> [topology("p3.8xlarge:2x4").nic_of(gpu) for gpu in (0, 3, 4)]
            [0, 0, 1]
        """
        host, local = self.host_of(gpu), gpu % self.gpus_per_host
        return host * self.nics_per_host + local * self.nics_per_host // self.server_gpus

    @property
    def spec(self) -> str:
        """The text that selects this topology: ``NAME:HOSTSxGPUS``."""
        return f"{self.name}:{self.hosts}x{self.gpus_per_host}"

    def sized(self, hosts: int, gpus_per_host: int) -> Topology:
        """The same servers in another number.

        Args:
            hosts: number of hosts.
            gpus_per_host: GPUs used on each, at most what the server has.

        Returns:
            A new topology.

        Raises:
            UsageError: a number is below one, or above what a server has.

        Example:
            >>> from hlorewrite.cost import topology
            >>> topology("h200").sized(2, 4).spec
            'h200:2x4'
        """
        if hosts < 1 or gpus_per_host < 1:
            raise UsageError(f"{hosts}x{gpus_per_host} is not a cluster", hint="both numbers must be at least 1")
        if gpus_per_host > self.server_gpus:
            enough = -(-hosts * gpus_per_host // self.server_gpus)
            raise UsageError(f"{self.name} servers have {self.server_gpus} GPUs each, not {gpus_per_host}",
                             hint=f"for as many GPUs write {self.name}:{enough}x{self.server_gpus}")
        return replace(self, hosts=hosts, gpus_per_host=gpus_per_host)
