"""The cluster that devices form: their kind of GPU, and how many of them a host has."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hlorewrite.cost import Topology, topology
from hlorewrite.cost.cluster.capacity import topology_of_kind


def device_topology(devices: Sequence[Any]) -> Topology | None:
    """The cluster that devices are.

    A process that drives several GPUs is taken for a host; where each drives one, hosts are taken to be full.

    Args:
      devices: JAX's devices, all of one kind.

    Returns:
      The cluster; None when the GPU is not known, or processes have different numbers of them.
    """
    name = topology_of_kind(str(getattr(devices[0], "device_kind", ""))) if devices else ""
    counts = Counter(getattr(device, "process_index", 0) for device in devices).values()
    if not name or len(set(counts)) != 1:
        return None
    server, most = topology(name), max(counts)
    per_host = most if 1 < most <= server.server_gpus else min(len(devices), server.server_gpus)
    return server.sized(-(-len(devices) // per_host), per_host)
