"""Seconds of collectives on the cluster a run names, for passes that weigh them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from hlorewrite.cost import CollectiveModel, Topology, collective_model, topology
from hlorewrite.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray

DEFAULT_SERVERS = "h100"
_HOST = 8
_LARGEST = 40


class CollectiveTimes:
    """Times of collectives on one cluster, remembered by kind, payload and groups.

    Args:
      spec: a topology's text. A name alone means as many whole servers as the devices need. If it is empty, no cluster
        is named, and servers of eight H100s are assumed.
      devices: how many devices the module runs on.

    Attributes:
      topology: the cluster.
      cluster: the cluster's name in messages, which says if it is assumed.

    Raises:
      UsageError: the topology is unknown, or has fewer GPUs than the module has devices.

    Example:
      >>> times = CollectiveTimes("h200:1x8", 8)
      >>> one, eight = times.curve("all-reduce", ((0, 1, 2, 3, 4, 5, 6, 7),))([1 << 20, 1 << 23])
      >>> bool(one < eight < 8 * one)
      True
      >>> CollectiveTimes("", 4).cluster
      'h100:1x4 (assumed, no cluster is named)'
    """

    def __init__(self, spec: str, devices: int) -> None:
        self.named = bool(spec)
        if not spec:
            hosts = -(-devices // _HOST)
            spec = f"{DEFAULT_SERVERS}:{hosts}x{min(max(devices, 1), _HOST)}"
        self.topology: Topology = topology(spec)
        if self.named and ":" not in spec and devices > self.topology.gpus and not spec.endswith(".toml"):
            per_host = self.topology.gpus_per_host
            self.topology = self.topology.sized(-(-devices // per_host), per_host)
        if self.topology.gpus < devices:
            raise UsageError(f"the module runs on {devices} devices but topology {self.topology.spec} has "
                             f"{self.topology.gpus}", hint="name a larger one, NAME:HOSTSxGPUS")
        self.cluster = self.topology.spec if self.named else f"{self.topology.spec} (assumed, no cluster is named)"
        self._seconds: dict[tuple[str, int, tuple[tuple[int, ...], ...]], float] = {}
        self._curves: dict[tuple[str, tuple[tuple[int, ...], ...]], tuple[Array, Array]] = {}

    @cached_property
    def model(self) -> CollectiveModel:
        """The cost model of the cluster."""
        return collective_model(self.topology)

    def seconds(self, kind: str, payload: int, groups: Sequence[Sequence[int]]) -> float:
        """Seconds of one collective; see ``CollectiveModel.collective_time``."""
        key = (kind, payload, tuple(map(tuple, groups)))
        if key not in self._seconds:
            self._seconds[key] = self.model.collective_time(kind, payload, groups)
        return self._seconds[key]

    def curve(self, kind: str, groups: tuple[tuple[int, ...], ...]) -> Callable[[Sequence[int] | Array], Array]:
        """Seconds by payload, read from a table of the model at powers of two.

        Args:
          kind: the collective.
          groups: device numbers of each group.

        Returns:
          A function of many payloads in bytes.
        """
        import numpy as np
        key = (kind, groups)
        if key not in self._curves:
            sizes = [0, *(1 << power for power in range(8, _LARGEST))]
            self._curves[key] = (np.array(sizes, float), np.array([self.seconds(kind, s, groups) for s in sizes]))
        known, times = self._curves[key]
        return lambda payloads: np.asarray(np.interp(payloads, known, times))
