"""Compilation targets: ``cpu:8``, ``gpu``, or described GPUs such as ``h200:2x8`` (hosts x GPUs of each)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from hlorewrite.cost import Topology, topology
from hlorewrite.cost.cluster.capacity import topology_of_kind
from hlorewrite.errors import UsageError, did_you_mean

_FORM = "write cpu:DEVICES, gpu, or GPU:HOSTSxGPUS such as h200:2x8"


@dataclass(frozen=True)
class Target:
    """A mesh to compile for.

    Attributes:
      text: as the user wrote it.
      platform: ``cpu``, ``gpu`` (the GPUs of this machine) or ``described`` (GPUs that need not be present).
      hosts: machines.
      devices_per_host: devices of each host; 0 for ``gpu``, whose number is looked up later.
      description: XLA's text description of the GPU; empty unless described.
    """

    text: str
    platform: str
    hosts: int = 1
    devices_per_host: int = 0
    description: str = ""

    @property
    def devices(self) -> int:
        """Devices in total; 0 when it depends on the machine."""
        return self.hosts * self.devices_per_host


def described_gpus() -> list[str]:
    """Names of the GPUs that have a description, sorted."""
    folder = resources.files(str(__package__)) / "targets"
    return sorted(file.name.removesuffix(".txtpb") for file in folder.iterdir() if file.name.endswith(".txtpb"))


def parse_target(text: str) -> Target:
    """Reads a target.

    Args:
      text: ``cpu:8``, ``gpu`` or ``NAME:HOSTSxGPUS``; a lone number of GPUs means one host.

    Returns:
      The target, with the description of its GPU.

    Raises:
      UsageError: no such GPU is described, or the numbers are missing or zero.

    Example:
      >>> parse_target("h200:2x8").devices
      16
    """
    name, _, size = text.strip().lower().partition(":")
    if name == "gpu":
        if size:
            raise UsageError(f'target "{text}" gives a size, but gpu means the GPUs of this machine',
                             hint=f"use gpu, or one of {', '.join(described_gpus())} with a size")
        return Target(text, "gpu")
    counts = re.fullmatch(r"(?:([1-9]\d{0,4})x)?([1-9]\d{0,4})", size)
    if name == "cpu":
        if not counts or counts.group(1):
            raise UsageError(f'target "{text}" does not say how many CPU devices', hint="write cpu:8, say")
        return Target(text, "cpu", 1, int(counts.group(2)))
    known = described_gpus()
    if name not in known:
        raise UsageError(f'unknown target "{text}"', hint=did_you_mean(name, [*known, "cpu", "gpu"]) + f" ({_FORM})")
    if not counts:
        raise UsageError(f'target "{text}" does not say how many GPUs', hint=_FORM)
    description = (resources.files(str(__package__)) / "targets" / f"{name}.txtpb").read_text()
    return Target(text, "described", int(counts.group(1) or 1), int(counts.group(2)), description)


# ---- the cluster that devices form: their kind of GPU, and how many of them a host has


def device_topology(devices: Sequence[Any]) -> Topology | None:
    """The cluster that the devices form.

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
