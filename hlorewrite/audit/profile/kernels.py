"""Kernels of a profile, whichever tool wrote it."""

import re
from dataclasses import dataclass

from hlorewrite.ir.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_PERMUTE,
    RAGGED_ALL_TO_ALL,
    REDUCE_SCATTER,
)

_NCCL = re.compile(r"nccl(?:Dev)?Kernel_?([A-Za-z]+?)(?:_|\(|$)")
_EXCHANGES = (ALL_TO_ALL.kind, COLLECTIVE_PERMUTE.kind, RAGGED_ALL_TO_ALL.kind)
_KINDS = {"AllReduce": (ALL_REDUCE.kind,), "AllGather": (ALL_GATHER.kind,), "ReduceScatter": (REDUCE_SCATTER.kind,),
          "SendRecv": _EXCHANGES, "AlltoAll": _EXCHANGES, "AllToAll": _EXCHANGES,
          "Broadcast": (COLLECTIVE_BROADCAST.kind,)}


@dataclass(frozen=True)
class ProfiledKernel:
    """A kernel of a profile: one run of it, or all runs of the kernels with this name added up.

    Attributes:
      name: name of the kernel.
      seconds: total time of its runs.
      runs: how often it ran.
      device: the GPU; empty if the profile adds up all runs.
      start_s: when it began; None if the profile adds up all runs.
      op: the HLO instruction it belongs to; empty if the profile does not say.
    """

    name: str
    seconds: float
    runs: int
    device: str = ""
    start_s: float | None = None
    op: str = ""


def nccl_kinds(kernel: str) -> tuple[str, ...]:
    """The kinds of collectives that a kernel of NCCL may be; empty for other kernels.

    Args:
      kernel: its name.

    Example:
      >>> nccl_kinds("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)")
      ('all-reduce',)
      >>> nccl_kinds("loop_add_fusion_3")
      ()
    """
    match = _NCCL.search(kernel)
    return _KINDS.get(match.group(1), ("?",)) if match else ()
