"""Memory budgets against the memory of a described device."""

import os
from collections.abc import Mapping

from hlorewrite.cost.cluster.topology_file import topology
from hlorewrite.errors import InputError
from hlorewrite.util.sizes import format_bytes

USABLE_SHARE = 0.9
"""The share of a device's memory that a step may take unless something else is said. The rest is for the runtime,
NCCL's buffers and fragmentation."""
SHARE_VARIABLES = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
"""The environment variables by which users set the share of the memory that JAX's allocator takes; the first counts."""


def usable_bytes(capacity: int, environment: Mapping[str, str] | None = None) -> int:
    """The part of a device's memory that a step may use.

    Args:
      capacity: bytes of one device.
      environment: that of this process by default.

    Returns:
      Bytes: the share that the user gives JAX's allocator, or ``USABLE_SHARE``.

    Example:
      >>> usable_bytes(1000, {}), usable_bytes(1000, {"XLA_CLIENT_MEM_FRACTION": "0.75"})
      (900, 750)
    """
    given = os.environ if environment is None else environment
    text = next((given[name] for name in SHARE_VARIABLES if given.get(name)), "")
    try:
        share = float(text or USABLE_SHARE)
    except ValueError:  # JAX itself refuses it where it counts
        share = USABLE_SHARE
    return int(capacity * (share if 0.0 < share <= 1.0 else USABLE_SHARE))


class BudgetRefused(InputError):
    """A memory budget is not possible on the devices, so the original is kept."""


def checked_capacity(budget: int, cluster: str, location: str) -> str:
    """A budget that a device has room for.

    Args:
      budget: bytes.
      cluster: the topology of the devices; empty if it is not known.
      location: what the budget is for.

    Returns:
      The budget in words.

    Raises:
      BudgetRefused: it is more than the memory of one device.

    Example:
      >>> checked_capacity(2**33, "h200:1x8", "step")
      'memory budget 8.00 GiB'
    """
    capacity = topology(cluster).memory_bytes if cluster else float("inf")
    if budget > capacity:
        raise BudgetRefused(f"a memory budget of {format_bytes(budget)} is more than one GPU of {cluster} has "
                            f"({format_bytes(capacity)})", location=location, hint="use less, or auto")
    return f"memory budget {format_bytes(budget)}"


# ---- clusters by the name that a runtime gives their devices


_GPUS = (("gb300", "gb300-nvl72"), ("gb200", "gb200-nvl72"), ("b200", "b200"), ("h200", "h200"), ("h100", "h100"),
         ("a100", "a100"), ("v100", "v100"), ("rtx3090", "rtx3090"))


def topology_of_kind(kind: str) -> str:
    """The topology whose GPU has a device's name.

    Args:
      kind: such as ``NVIDIA H200 141GB HBM3e``.

    Returns:
      The name of a shipped topology; empty for any other device.

    Example:
      >>> topology_of_kind("NVIDIA H200 141GB HBM3e"), topology_of_kind("cpu")
      ('h200', '')
    """
    plain = kind.lower().replace(" ", "")
    return next((name for part, name in _GPUS if part in plain), "")
