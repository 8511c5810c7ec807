"""Which cluster devices are: their kind of GPU, and how many of them a host has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hlorewrite.cost import Topology, topology

_KNOWN_GPUS = (("gb300", "gb300-nvl72"), ("gb200", "gb200-nvl72"), ("b200", "b200"), ("h200", "h200"),
               ("h100", "h100"), ("a100", "a100"), ("v100", "v100"), ("rtx3090", "rtx3090"))


def server_of(devices: Sequence[Any]) -> str | None:
    """The server whose GPU the devices name; None for anything else.

    Args:
      devices: JAX's devices, all of one kind.
    """
    kind = devices[0].device_kind.lower().replace(" ", "") if devices else ""
    return next((name for part, name in _KNOWN_GPUS if part in kind), None)


def device_topology(devices: Sequence[Any]) -> Topology | None:
    """The cluster that devices are.

    A process that drives several GPUs is taken for a host; where each drives one, hosts are taken to be full.

    Args:
      devices: JAX's devices, all of one kind.

    Returns:
      The cluster; None when the GPU is not known.
    """
    name = server_of(devices)
    if name is None:
        return None
    server = topology(name)
    most = max(Counter(device.process_index for device in devices).values())
    per_host = most if 1 < most <= server.server_gpus else min(len(devices), server.server_gpus)
    return server.sized(-(-len(devices) // per_host), per_host)
