"""Sets up this process for CPU devices; imported before jax."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def use_cpu_devices(count: int) -> None:
    """Makes a number of CPU devices and this checkout's hlorewrite importable.

    Args:
      count: devices of this process.
    """
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    kept = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if "host_platform_device_count" not in flag]
    os.environ["XLA_FLAGS"] = " ".join([*kept, f"--xla_force_host_platform_device_count={count}"])
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
