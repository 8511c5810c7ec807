"""Clusters by the name that a runtime gives their devices."""

from __future__ import annotations

_GPUS = (("gb300", "gb300-nvl72"), ("gb200", "gb200-nvl72"), ("b200", "b200"), ("h200", "h200"), ("h100", "h100"),
         ("a100", "a100"), ("v100", "v100"), ("rtx3090", "rtx3090"))


def topology_of_kind(kind: str) -> str:
    """The topology whose GPU a device's name speaks of.

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
