"""Keeps XLA's own log lines out of a command's output, and a command from waking devices it does not use."""

from __future__ import annotations

import os


def quiet_xla(platform: str = "") -> None:
    """Asks XLA for errors only; must run before jaxlib is imported.

    Args:
      platform: ``cpu`` keeps JAX from touching the GPUs of this machine.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GLOG_minloglevel", "3")
    if platform == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
