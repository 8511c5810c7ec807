"""What passes may spend of a device's memory: the user's budget, checked against the device, or what is left of it."""

from __future__ import annotations

from dataclasses import dataclass

from hlorewrite.cost import topology
from hlorewrite.cost.cluster.capacity import BudgetRefused, checked_capacity
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Format, Module
from hlorewrite.ir.save import emit
from hlorewrite.jaxbridge.against_xla.measured import Measured, scheduled
from hlorewrite.jaxbridge.xla.without_code import DeviceSet
from hlorewrite.util.memory_budget import MemoryBudget
from hlorewrite.util.sizes import format_bytes

MARGIN = 0.1
"""The share of a device's memory that ``auto`` leaves free: for the runtime, NCCL's buffers and fragmentation."""
AloneMeasured = tuple[Measured, bytes | None]
"""What XLA alone makes of a step, and its partitioned program where it was asked for."""


@dataclass(frozen=True)
class MemoryGrant:
    """What passes may spend on one step.

    Attributes:
      bytes: the bytes; None for the limits of the passes.
      text: what a report says of it; empty without a budget.
      alone: what XLA makes of the original, where it was compiled for this.
    """

    bytes: int | None = None
    text: str = ""
    alone: AloneMeasured | None = None


def granted(budget: MemoryBudget, module: Module, place: DeviceSet, cluster: str, *, partitioned: bool = False
            ) -> MemoryGrant:
    """Checks a budget against the described device, or computes it. No live memory is read.

    Args:
      budget: what the user wrote; ``auto`` is the memory of one device of the cluster, less what the compiled original
        takes (arguments, results and temporaries), less a tenth of the memory.
      module: the original; it is not changed.
      place: what it is compiled for.
      cluster: the topology of the devices; empty where it is not known.
      partitioned: keep the program that XLA's partitioner makes of the original.

    Raises:
      BudgetRefused: it is more than the device has; or it is ``auto``, and the devices are not described, the original
        cannot be compiled, or does not fit.
    """
    if budget is None:
        return MemoryGrant()
    if budget != "auto":
        return MemoryGrant(budget, checked_capacity(budget, cluster, module.name))
    if not cluster:
        raise BudgetRefused('memory_budget="auto" needs to know the devices', location=module.name,
                            hint='name the cluster, such as topology="h200:1x8"')
    capacity = int(topology(cluster).memory_bytes)
    try:
        alone = scheduled(parse(emit(module, Format.BYTECODE), name=module.name), place, {}, partitioned)
    except HlorewriteError as error:
        raise BudgetRefused(f'memory_budget="auto" needs the compiled original: {error.what}',
                            location=module.name) from None
    peak, margin = alone[0].memory, int(MARGIN * capacity)
    if peak + margin > capacity:
        raise BudgetRefused(f"the original takes {format_bytes(peak)}, and one GPU of {cluster} has "
                            f"{format_bytes(capacity)}, of which {MARGIN:.0%} stay free: nothing is left to spend",
                            location=module.name, hint="shard more, or name a budget")
    left = capacity - peak - margin
    return MemoryGrant(left, f"memory budget {format_bytes(left)}: {format_bytes(capacity)} of one GPU of {cluster}, "
                       f"less {format_bytes(peak)} of the original, less {MARGIN:.0%}", alone)
