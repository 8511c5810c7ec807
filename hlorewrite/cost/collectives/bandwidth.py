"""Bandwidths that follow from a collective's time, by nccl-tests' definitions."""

from collections.abc import Sequence
from typing import Any

from hlorewrite.cost.collectives.models import NcclModel
from hlorewrite.ir.collectives import ALL_REDUCE, BY_KIND


def bus_factor(kind: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md).

    Args:
      kind: the collective.
      ranks: ranks of a group.

    Returns:
      2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 otherwise.

    Example:
      >>> bus_factor("all-reduce", 8)
      1.75
    """
    if ranks < 2 or BY_KIND[kind].copies:
        return 1.0
    return (ranks - 1) / ranks * (2 if kind == ALL_REDUCE.kind else 1)


def describe(times: NcclModel, kind: str, payload_bytes: int, groups: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Time and bandwidths of one collective.

    Args:
      times: the model to ask.
      kind: one of ``hlorewrite.cost.KINDS``.
      payload_bytes: the larger of operand and result, bytes of one device.
      groups: device numbers of each group.

    Returns:
      The output of ``hlorewrite collective --json``.
    """
    time = times.collective_time(kind, payload_bytes, groups)
    algorithm, protocol = times.choice(kind, payload_bytes, groups)
    ranks = max(len(group) for group in groups)
    rate = payload_bytes / time if time else 0.0
    return {
        "kind": kind, "bytes": payload_bytes, "topology": times.topology.spec, "ranks": ranks, "groups": len(groups),
        "time_s": time, "algorithm_bandwidth_bytes_per_s": rate,
        "bus_bandwidth_bytes_per_s": rate * bus_factor(kind, ranks), "algorithm": algorithm, "protocol": protocol,
    }
