"""Sets of XLA flags that are published as fast: what ``hlorewrite tune`` tries, and all that a plan file may set."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hlorewrite.ir.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER

Flags = Mapping[str, str | bool | int]

_JAX = "https://docs.jax.dev/en/latest/gpu_performance_tips.html"
_TOOLBOX = "https://github.com/NVIDIA/JAX-Toolbox/blob/main/rosetta/docs/GPU_performance.md"
_HIDING: Flags = {"xla_gpu_enable_latency_hiding_scheduler": True}
_PIPELINED: Flags = {**_HIDING, "xla_gpu_enable_pipelined_all_gather": True,
                     "xla_gpu_enable_pipelined_reduce_scatter": True, "xla_gpu_enable_pipelined_all_reduce": True}
_COMBINED = {f"xla_gpu_{row.kind.replace('-', '_')}_combine_threshold_bytes": 8 << 30
             for row in (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER)}


@dataclass(frozen=True)
class FlagSet:
    """XLA flags that are published for training on GPUs.

    Attributes:
      name: short, for tables.
      source: where it stands.
      flags: without dashes.
    """

    name: str
    source: str
    flags: Flags


FLAG_SETS = (
    FlagSet("latency hiding", _JAX, _HIDING),
    FlagSet("pipelined", _TOOLBOX, _PIPELINED),
    FlagSet("pipelined, combined", _TOOLBOX, {**_PIPELINED, **_COMBINED}),
    FlagSet("pipelined, double-buffered", _TOOLBOX, {**_PIPELINED, "xla_gpu_enable_while_loop_double_buffering": True}),
)
"""The sets that are tried. Releases of XLA differ in the ones they switch on by default."""


# ---- XLA flags that a user sets for all compilations of a process, in the environment variable ``XLA_FLAGS``


VARIABLE = "XLA_FLAGS"


def users_flags(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The flags in ``XLA_FLAGS``, without dashes. An option of one compilation would take their place.

    Args:
      environment: that of this process by default.

    Returns:
      Values by name; ``true`` for a flag without a value. XLA takes a text that does not begin with a dash for the name
      of a file; what of it cannot be read has no flags, as XLA says itself.

    Example:
      >>> users_flags({"XLA_FLAGS": "--xla_gpu_autotune_level=0  --xla_dump_hlo_as_text"})
      {'xla_gpu_autotune_level': '0', 'xla_dump_hlo_as_text': 'true'}
    """
    text = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
    try:
        if text and not text.startswith("-"):
            text = Path(text).read_text()
        words = shlex.split(text)
    except (OSError, ValueError):  # ValueError: a quote is not closed, or the file is not text
        return {}
    pairs = (word.lstrip("-").partition("=") for word in words if word.startswith("-"))
    return {name: value if equals else "true" for name, equals, value in pairs}
