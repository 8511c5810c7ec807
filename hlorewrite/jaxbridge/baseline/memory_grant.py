"""The device memory that passes may spend: the user's budget, checked against the device, or the memory left over."""

from dataclasses import dataclass, replace

from hlorewrite.cost import topology
from hlorewrite.cost.cluster.capacity import BudgetRefused, checked_capacity, usable_bytes
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir import Format, Module, emit, parse
from hlorewrite.jaxbridge.baseline.measured import Measured, scheduled
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.util.sizes import MemoryBudget, format_bytes

USABLE, MARGIN = 0.8, 0.05
"""``GetSchedulerMemoryLimit`` of XLA:GPU: 80 % of a device's memory, less arguments and results, less 5 % of that, is
for temporaries. Above this limit, XLA stops overlapping and recomputes. The rest is for the runtime, NCCL's buffers and
fragmentation.
"""
AloneMeasured = tuple[Measured, bytes | None]
"""XLA's compilation of a step, and its partitioned program if requested."""


def free_bytes(alone: Measured) -> int | None:
    """The memory that XLA alone leaves for values that passes keep longer, within the scheduler's limit and the device.

    Args:
      alone: XLA alone, with its times.

    Returns:
      Bytes; None if the memory of the devices is not known.

    Example:
      >>> free_bytes(Measured(8, 800, 800, 100, 0.0, "", memory=300, capacity=1000)), free_bytes(Measured(
      ...     8, 800, 800, 100, 0.0, "", memory=990, capacity=1000))
      (470, 0)
    """
    if not alone.capacity:
        return None
    kept = alone.memory - alone.temp
    scheduled_within = int((1 - MARGIN) * (USABLE * alone.capacity - kept))
    return max(0, min(scheduled_within - alone.temp, usable_bytes(alone.capacity) - alone.memory))


@dataclass(frozen=True)
class MemoryGrant:
    """The memory that passes may spend on one step.

    Attributes:
      bytes: the bytes; None for the limits of the passes.
      text: its description in a report; empty without a budget.
      alone: XLA's compilation of the original, if it was compiled for this.
    """

    bytes: int | None = None
    text: str = ""
    alone: AloneMeasured | None = None


def granted(budget: MemoryBudget, module: Module, place: DeviceSet, cluster: str, *, partitioned: bool = False
            ) -> MemoryGrant:
    """Checks a budget against the described device, or computes it. It reads no live memory statistics.

    Args:
      budget: what the user wrote; ``auto`` is 80 % of the memory of one device of the cluster, less arguments and
        results, less 5 % of that, less the temporaries of the compiled original.
      module: the original; it is not changed.
      place: the target.
      cluster: the topology of the devices; empty if it is not known.
      partitioned: keep the program that XLA's partitioner makes of the original.

    Raises:
      BudgetRefused: it is more than the device has; or it is ``auto``, and the devices are not described or the
        original cannot be compiled.
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
    free = free_bytes(replace(alone[0], capacity=capacity)) or 0
    kept = alone[0].memory - alone[0].temp
    text = (f"memory budget {format_bytes(free)}: {USABLE:.0%} of {format_bytes(capacity)} of one GPU of {cluster}, "
            f"less {format_bytes(kept)} of arguments and results, less {MARGIN:.0%}, less "
            f"{format_bytes(alone[0].temp)} of temporaries of the original")
    return MemoryGrant(free, text, alone)
