"""The resharding cases of the MLSys 2023 paper's micro-benchmarks, and how they are scaled down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReshardCase:
    """One resharding.

    Args:
      name: what it is called in tables.
      source: hosts and GPUs per host of the source mesh.
      destination: the same of the destination mesh.
      shape: the tensor's shape; int32.
      source_spec: per dimension ``host``, ``gpu``, ``all`` or ``-``.
      destination_spec: the same of the destination.
      optimum: the best makespan, in units of the tensor's time through one NIC.
    """

    name: str
    source: tuple[int, int]
    destination: tuple[int, int]
    shape: tuple[int, ...]
    source_spec: str
    destination_spec: str
    optimum: float

    @property
    def receivers(self) -> int:
        """Number of destination devices."""
        return self.destination[0] * self.destination[1]

    def scaled(self, mib: float) -> ReshardCase:
        """The same case with about this many MiB: the last dimensions shrink, the sharded ones stay divisible."""
        shape = list(self.shape)
        full = 1
        for size in shape:
            full *= size
        factor = mib * 2**20 / (4 * full)
        if len(shape) == 1:
            shape[0] = int(shape[0] * factor) // 64 * 64
        else:
            side = factor ** (1 / 3)
            shape = [max(24, round(size * side / 24) * 24) for size in shape]
        return ReshardCase(self.name, self.source, self.destination, tuple(shape), self.source_spec,
                           self.destination_spec, self.optimum)


_CUBE = (1024, 1024, 512)
N_TO_M = (
    ReshardCase("case1", (2, 4), (2, 4), _CUBE, "host,-,-", "host,-,-", 0.5),
    ReshardCase("case2", (2, 4), (2, 4), _CUBE, "-,-,-", "host,-,-", 0.5),
    ReshardCase("case3", (2, 4), (2, 4), _CUBE, "-,host,-", "host,-,-", 0.5),
    ReshardCase("case4", (2, 4), (2, 4), _CUBE, "-,all,-", "all,-,-", 0.5),
    ReshardCase("case5", (2, 4), (2, 4), _CUBE, "gpu,-,-", "host,-,-", 0.5),
    ReshardCase("case6", (2, 4), (3, 4), (3072, 1024, 170), "host,-,-", "host,-,-", 0.5),
    ReshardCase("case7", (1, 4), (2, 4), _CUBE, "gpu,-,-", "-,-,-", 1.0),
    ReshardCase("case8", (1, 4), (2, 4), _CUBE, "gpu,-,-", "-,-,-", 1.0),
    ReshardCase("case9", (2, 4), (2, 4), _CUBE, "-,host,-", "-,-,host", 0.5),
)
ONE_TO_M = tuple(ReshardCase(f"1-to-{hosts * gpus}" + (f" ({hosts}x{gpus})" if hosts > 1 else ""), (1, 1),
                             (hosts, gpus), (1 << 28,), "-", "-", 1.0)
                 for hosts, gpus in ((1, 1), (1, 2), (1, 3), (1, 4), (2, 2), (3, 2), (4, 2), (4, 4)))
