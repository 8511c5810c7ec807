"""Sets of XLA flags that are published as fast: what ``hlorewrite tune`` tries, and all that a plan file may set."""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxlib import version as jaxlib_version

from hlorewrite.ir.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER

Flags = Mapping[str, str | bool | int]

_JAX = "https://docs.jax.dev/en/latest/gpu_performance_tips.html"
_TOOLBOX = "https://github.com/NVIDIA/JAX-Toolbox/blob/main/rosetta/docs/GPU_performance.md"
_KINDS = tuple(row.kind.replace("-", "_") for row in (ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE))
_HIDING: Flags = {"xla_gpu_enable_latency_hiding_scheduler": True}
_COMBINED: Flags = {f"xla_gpu_{kind}_combine_threshold_bytes": 8 << 30 for kind in _KINDS}
_DOUBLE_BUFFERED: Flags = {"xla_gpu_enable_while_loop_double_buffering": True}
_SPELLINGS: tuple[tuple[tuple[int, ...], Flags], ...] = (
    ((0, 11, 1), {f"xla_gpu_pipeline_{kind}": "COLLECTIVE_PIPELINING_MODE_ON" for kind in _KINDS}),
    ((0,), {f"xla_gpu_enable_pipelined_{kind}": True for kind in _KINDS}),
)
"""The options by which each release of jaxlib, the newest first, pipelines collectives.

``XLA_FLAGS`` still takes the older names on a newer release, and says that they are deprecated; the options of a single
compilation do not.
"""


@dataclass(frozen=True)
class FlagSet:
    """XLA flags that are published for training on GPUs.

    Attributes:
      name: short, for tables.
      source: where it is documented.
      flags: without dashes.
    """

    name: str
    source: str
    flags: Flags


def flag_sets(release: tuple[int, ...]) -> tuple[FlagSet, ...]:
    """The published sets as a release of jaxlib spells them. Releases differ in the ones they switch on by default.

    Args:
      release: such as ``(0, 12, 0)``.

    Example:
      >>> [sorted(flag_sets(release)[1].flags)[-1] for release in ((0, 10, 2), (0, 12, 0))]
      ['xla_gpu_enable_pipelined_reduce_scatter', 'xla_gpu_pipeline_reduce_scatter']
    """
    pipelined = {**_HIDING, **next(flags for since, flags in _SPELLINGS if release >= since)}
    return (FlagSet("latency hiding", _JAX, _HIDING), FlagSet("pipelined", _TOOLBOX, pipelined),
            FlagSet("pipelined, combined", _TOOLBOX, {**pipelined, **_COMBINED}),
            FlagSet("pipelined, double-buffered", _TOOLBOX, {**pipelined, **_DOUBLE_BUFFERED}),
            FlagSet("pipelined, combined, double-buffered", _TOOLBOX, {**pipelined, **_COMBINED, **_DOUBLE_BUFFERED}))


STREAMS: Flags = {**_HIDING, "xla_gpu_experimental_enable_collective_multi_streaming": True,
                  "xla_gpu_experimental_parallel_collective_overlap_limit": 2}
"""XLA options under which XLA honours the annotations of the pass ``separate-streams``. It is not a published set."""

PROFILE = "xla_gpu_pgle_profile_file_or_directory_path"
"""The XLA option that names the file of a profile, from which XLA's scheduler takes times of instructions."""
PROFILED: Flags = {**_HIDING, "xla_gpu_pgle_accuracy_checker": "PGLE_STRICTNESS_LEVEL_OFF"}
"""XLA options next to a profile of predicted times: XLA need not warn about instructions that the profile lacks."""
_PROFILE_LINE = re.compile(r'costs \{ name: "[\w.\-]+" cost_us: \d+\.\d{3} \}')

FLAG_SETS = flag_sets(jaxlib_version.__version_info__)
"""The sets to try, for the installed jaxlib."""


def published_values() -> dict[str, tuple[str | bool | int, ...]]:
    """Every flag of a published set of any release, with the values it has there: all that a plan file may set."""
    found: dict[str, tuple[str | bool | int, ...]] = {}
    for flags in (*(each.flags for since, _ in _SPELLINGS for each in flag_sets(since)), STREAMS, PROFILED):
        for name, value in flags.items():
            found[name] = tuple(dict.fromkeys((*found.get(name, ()), value)))
    return found


def is_profile(text: object) -> bool:
    """Whether a text is a profile of predicted times: it names instructions and times, and nothing else.

    Example:
      >>> is_profile('costs { name: "fusion.1" cost_us: 1.500 }'), is_profile("/etc/passwd")
      (True, False)
    """
    return isinstance(text, str) and bool(text) and all(map(_PROFILE_LINE.fullmatch, text.splitlines()))


def beside(flags: Flags, users: Mapping[str, object]) -> dict[str, str | bool | int]:
    """A set of flags without those that a user sets, under whichever release's name.

    Args:
      flags: a set.
      users: the user's flags.

    Example:
      >>> beside({"xla_gpu_pipeline_all_reduce": "COLLECTIVE_PIPELINING_MODE_ON", "xla_gpu_b": True},
      ...        {"xla_gpu_enable_pipelined_all_reduce": "false"})
      {'xla_gpu_b': True}
    """
    same = {name: frozenset(names) for names in zip(*(spelled for _, spelled in _SPELLINGS), strict=True)
            for name in names}
    return {name: value for name, value in flags.items() if same.get(name, {name}).isdisjoint(users)}


# ---- XLA flags that a user sets for all compilations of a process, in the environment variable ``XLA_FLAGS``


VARIABLE = "XLA_FLAGS"


def users_flags(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The flags in ``XLA_FLAGS``, without dashes. An option of one compilation would take their place.

    Args:
      environment: that of this process by default.

    Returns:
      Values by name; ``true`` for a flag without a value. XLA takes a text that does not begin with a dash as a file
      name. A file that cannot be read has no flags; XLA reports it itself.

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
