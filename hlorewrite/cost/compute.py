"""Constants of the models of compute: what one GPU sustains, and what a simulated schedule adds."""

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


@functools.cache
def compute_constants() -> Mapping[str, Any]:
    """Calibrated constants, by name, as in ``data/compute.toml``."""
    text = (Path(__file__).parent / "data" / "compute.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@functools.cache
def timeline_constants() -> Mapping[str, Any]:
    """Constants of the simulated schedule, by name, as in ``data/timeline.toml``."""
    text = (Path(__file__).parent / "data" / "timeline.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
