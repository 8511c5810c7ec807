"""The links a plan is made for: hosts, the NIC port of each device, and what a link costs.

A NIC port sends and receives at its line rate at the same time (full duplex) and serves one transfer per
direction; the GPUs of a host share its ports as the topology says. Inside a host, the device at the port sends a chunk
to the others itself if a switch lets it reach each at its full rate and that rate keeps up with the port. Otherwise the
devices pass the chunk along a chain. These links are not scheduled one by one: a job is charged for the time they add,
and the links of a host together for all copies (``assign.py``).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.pipelines.reshard.layout import ReshardMesh

CHUNK_OVERHEAD_S = 6e-6
"""Cost of each chunk for a NIC in addition to its bytes: the preparation that XLA's speed-of-light model charges for an
H100."""


@dataclass(frozen=True)
class Network:
    """Where devices are, and what their links cost.

    Args:
      devices: device ids in rising order, shape ``[devices]``.
      host: host of each device, shape ``[devices]``.
      port: NIC port of each device, numbered over all hosts, shape ``[devices]``.
      nics_per_host: NIC ports of a host.
      bytes_per_s: line rate of a NIC port, one direction.
      latency_s: one way between two hosts.
      chunk_overhead_s: time a port spends on a chunk in addition to its bytes.
      local_bytes_per_s: rate between two devices of a host.
      local_latency_s: one hop inside a host.
      switched: whether a device reaches every other of its host at its full rate.
    """

    devices: np.ndarray
    host: np.ndarray
    port: np.ndarray
    nics_per_host: int
    bytes_per_s: float
    latency_s: float
    chunk_overhead_s: float
    local_bytes_per_s: float
    local_latency_s: float
    switched: bool = False

    def index(self, ids: np.ndarray) -> np.ndarray:
        """Positions of device ids in ``devices``."""
        return np.searchsorted(self.devices, ids)

    @property
    def ports(self) -> int:
        """Number of NIC ports, used or not."""
        return int(self.port.max()) + 1 if len(self.port) else 0

    @cached_property
    def host_bytes_per_s(self) -> np.ndarray:
        """Rate of all links inside each host together, shape ``[hosts]``."""
        return np.bincount(self.host) * self.local_bytes_per_s

    def local_latency(self, copies: int | np.ndarray) -> float | np.ndarray:
        """Seconds of the hops inside a host until the last of some devices has the data that arrived at another
        device's port.
        """
        direct = self.switched & (copies * self.bytes_per_s <= self.local_bytes_per_s)
        return self.local_latency_s * np.where(direct, np.minimum(copies, 1), copies)

    def local_time(self, size: float | np.ndarray, copies: int | np.ndarray) -> float | np.ndarray:
        """Seconds until a number of other devices of a host have a message; in a chain each waits for all of it."""
        return self.local_latency(copies) + copies * size / self.local_bytes_per_s

    def chunks(self, size: float, nic_hops: int, local_hops: int, least: int = 1) -> int:
        """The number of chunks that makes a pipelined chain fastest.

        With K chunks of S bytes through A NIC hops at B bytes/s and overhead o a chunk, the chain takes
        K·o + S/B + (A-1)(o + S/(K·B)) + local·S/(K·Bl): smallest at K = sqrt(S·((A-1)/B + local/Bl)/o).

        Args:
          size: bytes through the chain.
          nic_hops: hops between hosts, at least 1.
          local_hops: hops inside the last host.
          least: lower limit.

        Returns:
          The number of chunks, at least ``least``.
        """
        drain = max(nic_hops - 1, 0) / self.bytes_per_s + local_hops / self.local_bytes_per_s
        return max(least, round(math.sqrt(size * drain / self.chunk_overhead_s)), 1)


def network_of(topology: Topology, host_of: Mapping[int, int]) -> Network:
    """The links of some devices of a cluster.

    NICs count at their line rate; what protocols sustain scales all strategies alike.

    Args:
      topology: the servers; the number of hosts is taken from ``host_of``.
      host_of: device id -> host number; a host's devices are on it in the order of their ids.

    Returns:
      The network.

    Example:
      >>> from hlorewrite.cost import topology
      >>> network_of(topology("p3.8xlarge"), {0: 0, 1: 0, 2: 1}).port.tolist()
      [0, 0, 1]
    """
    ids = np.array(sorted(host_of), dtype=np.int64)
    host = np.array([host_of[int(i)] for i in ids], dtype=np.int64)
    order = np.argsort(host, kind="stable")
    counts = np.bincount(host[order]) if len(host) else np.zeros(0, np.int64)
    local = np.empty(len(ids), np.int64)
    local[order] = np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts, counts)
    slots = max(topology.server_gpus, int(counts.max(initial=1)))
    port = host * topology.nics_per_host + local * topology.nics_per_host // slots
    return Network(ids, host, port, nics_per_host=topology.nics_per_host, bytes_per_s=topology.nic_bytes_per_s,
                   latency_s=topology.inter_latency_s, chunk_overhead_s=CHUNK_OVERHEAD_S,
                   local_bytes_per_s=topology.intra_sustained_bytes_per_s, local_latency_s=topology.intra_latency_s,
                   switched=topology.switched)


def hosts_of_meshes(source: ReshardMesh, destination: ReshardMesh, gpus_per_host: int) -> dict[int, int]:
    """Hosts of two meshes' devices.

    A mesh whose first axis is ``host`` has one host per row; of any other mesh the devices fill hosts
    in order. The hosts of the destination follow those of the source, unless the two share devices: then
    device ``d`` is on host ``d // devices per host``.

    Args:
      source: the mesh the tensor is on.
      destination: the mesh it goes to.
      gpus_per_host: devices that fit on a host.

    Returns:
      Device id -> host number.

    Example:
      >>> from hlorewrite.pipelines.reshard.layout import parse_mesh
      >>> hosts_of_meshes(parse_mesh("1x2"), parse_mesh("2x1", 2), 4)
      {0: 0, 1: 0, 2: 1, 3: 2}
    """
    if np.isin(source.devices, destination.devices).any():
        each = max(_row(mesh, gpus_per_host) for mesh in (source, destination))
        return {int(d): int(d) // each for mesh in (source, destination) for d in mesh.devices}
    out: dict[int, int] = {}
    first = 0
    for mesh in (source, destination):
        each = _row(mesh, gpus_per_host)
        out.update((int(d), first + i // each) for i, d in enumerate(mesh.devices))
        first += -(-mesh.size // each)
    return out


def _row(mesh: ReshardMesh, gpus_per_host: int) -> int:
    if mesh.axes[0][0] == "host":
        return mesh.size // mesh.axes[0][1]
    return mesh.size if len(mesh.axes) == 1 and mesh.axes[0][0] == "gpu" else min(gpus_per_host, mesh.size)
