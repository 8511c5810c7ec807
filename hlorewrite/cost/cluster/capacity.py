"""Memory budgets against the memory of a described device."""

from __future__ import annotations

from hlorewrite.cost.cluster.topology_file import topology
from hlorewrite.errors import InputError
from hlorewrite.util.sizes import format_bytes


class BudgetRefused(InputError):
    """A memory budget is not possible on the devices, so the original is kept."""


def checked_capacity(budget: int, cluster: str, location: str) -> str:
    """A budget that a device has room for.

    Args:
      budget: bytes.
      cluster: the topology of the devices; empty where it is not known.
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
                            f"({format_bytes(capacity)})", location=location, hint="give less, or auto")
    return f"memory budget {format_bytes(budget)}"
