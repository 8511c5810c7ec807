"""One way to compile a step (passes, the policy for keeping them, a memory budget, XLA flags) and its measured result.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hlorewrite.errors import InputError, OutputError
from hlorewrite.passes.all_reduce_fusion import AllReduceFusion
from hlorewrite.passmanager.named import AUTO, PIPELINES
from hlorewrite.passmanager.spec import format_pipeline, parse_pipeline
from hlorewrite.util.read import read_json, read_regular
from hlorewrite.util.sizes import exact_bytes
from hlorewrite.util.write import write_file

Flag = str | bool | int
NamedFlags = tuple[str, tuple[tuple[str, Flag], ...]]
"""The name of a set of XLA flags, and the flags without dashes."""
DEFAULT_FLAGS = "defaults"
NEAR = 0.002
"""A smaller share of the step or of the memory is not a difference."""


@dataclass(frozen=True)
class TuneChoice:
    """A way to compile a step.

    Attributes:
      passes: a named pipeline or its text; empty for XLA alone.
      keep: as ``hlorewrite.optimize`` takes it.
      budget: bytes that a device may spend on what passes keep for longer; None for the limits of the passes.
      buckets: bytes of a bucket of all-reduce-fusion; None for its own choice.
      flag_set: name of the XLA flags.
      flags: the flags, without dashes.
    """

    passes: str
    keep: Literal["better", "always"] = "always"
    budget: int | None = None
    buckets: int | None = None
    flag_set: str = DEFAULT_FLAGS
    flags: tuple[tuple[str, Flag], ...] = ()

    @property
    def name(self) -> str:
        """A short name for tables."""
        parts = [self.passes or "XLA alone"]
        parts += ["the better"] if self.keep == "better" and self.passes != AUTO else []
        parts += [f"budget {exact_bytes(self.budget)}"] if self.budget is not None else []
        parts += [f"buckets of {exact_bytes(self.buckets)}"] if self.buckets is not None else []
        parts += [f"flags: {self.flag_set}"] if self.flags else []
        return ", ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """What ``from_json`` reads."""
        return {"passes": self.passes, "keep": self.keep, "budget": self.budget, "buckets": self.buckets,
                "flag_set": self.flag_set, "flags": dict(self.flags)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TuneChoice:
        """The choice that ``as_json`` wrote; raises ValueError if a value is of another kind."""
        flags = content["flags"]
        if content["keep"] not in ("better", "always") or not isinstance(flags, dict):
            raise ValueError("keep or flags")
        return cls(_kept(content, "passes", str), content["keep"], _kept(content, "budget", int, None),
                   _kept(content, "buckets", int, None), _kept(content, "flag_set", str),
                   tuple((name, _kept(flags, name, str, bool, int)) for name in flags))

    @property
    def pipeline(self) -> str:
        """The value of ``passes`` for ``hlorewrite.optimize``."""
        return self.passes if self.buckets is None else with_buckets(self.passes, self.buckets)

    def python(self, topology: str) -> str:
        """The line of Python that compiles a step in this way.

        Args:
          topology: the cluster, such as ``h200:4x8``.

        Example:
          >>> TuneChoice("comm").python("h200:1x8")
          'step = hlorewrite.optimize(step, passes="comm", keep="always", topology="h200:1x8")'
          >>> TuneChoice("").python("h200:1x8"), TuneChoice("auto", "better").python("h200:1x8")
          ('step = jax.jit(step)', 'step = hlorewrite.optimize(step, topology="h200:1x8")')
        """
        options = [f"compiler_options={dict(self.flags)!r}"] if self.flags else []
        if not self.passes:
            return f"step = jax.jit({', '.join(['step', *options])})"
        budget = [f'memory_budget="{exact_bytes(self.budget)}"'] if self.budget is not None else []
        own = [] if self.passes == AUTO else [f'passes="{self.pipeline}"', f'keep="{self.keep}"']
        words = [*own, *budget, f'topology="{topology}"', *options]
        return f"step = hlorewrite.optimize(step, {', '.join(words)})"


@dataclass(frozen=True)
class TunePoint:
    """The result of a choice on the target.

    Attributes:
      choice: the choice.
      step_s: predicted seconds of a step; None if there is no prediction.
      exposed_s: what communication adds to it.
      executed_bytes: bytes of all collectives of a step on one device.
      memory_bytes: memory of one device: arguments, results, temporaries.
      digest: the digest of the module that XLA compiles.
      compile_s: XLA's wall-clock time to the end; None if it was not compiled so far.
      failed: why there are no figures; empty when there are.
      way: the way that ``auto`` chose.
    """

    choice: TuneChoice
    step_s: float | None = None
    exposed_s: float | None = None
    executed_bytes: int = 0
    memory_bytes: int = 0
    digest: str = ""
    compile_s: float | None = None
    failed: str = ""
    way: str = ""

    @property
    def name(self) -> str:
        """A short name for tables."""
        return f"{self.choice.name}: {self.way}" if self.way else self.choice.name

    def as_json(self) -> dict[str, Any]:
        """What ``from_json`` reads."""
        return {"choice": self.choice.as_json(), "step_s": self.step_s, "exposed_s": self.exposed_s,
                "executed_bytes": self.executed_bytes, "memory_bytes": self.memory_bytes, "digest": self.digest,
                "compile_s": self.compile_s, "failed": self.failed, "way": self.way}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TunePoint:
        """The point that ``as_json`` wrote; raises ValueError if a value is of another kind."""
        return cls(TuneChoice.from_json(content["choice"]), _kept(content, "step_s", float, int, None),
                   _kept(content, "exposed_s", float, int, None), _kept(content, "executed_bytes", int),
                   _kept(content, "memory_bytes", int), _kept(content, "digest", str),
                   _kept(content, "compile_s", float, int, None), _kept(content, "failed", str),
                   _kept(content, "way", str))


def _kept(content: Mapping[str, Any], name: str, *kinds: type | None) -> Any:
    """A value of a file; numbers are finite and not negative."""
    value = content[name]
    if type(value) not in kinds and not (value is None and None in kinds):
        raise ValueError(name)
    if isinstance(value, float | int) and not 0 <= value < math.inf:
        raise ValueError(name)
    return value


@dataclass(frozen=True)
class TunedStep:
    """What a search found.

    Attributes:
      points: everything that was tried, in that order.
      memory: bytes a device has; None for no bound.
      left_out: how many choices were not tried when the time was over.
    """

    points: tuple[TunePoint, ...]
    memory: int | None = None
    left_out: int = 0
    frontier: tuple[TunePoint, ...] = field(init=False)
    """Points within the memory that no other one beats in step time and memory, the fastest first."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "frontier", frontier(self.points, self.memory))

    @property
    def best(self) -> TunePoint | None:
        """The fastest point within the memory; None if nothing fits."""
        return self.frontier[0] if self.frontier else None

    @property
    def auto(self) -> TunePoint | None:
        """The result of ``auto``, with the user's own XLA flags; None if it was not measured."""
        return next((point for point in self.points if point.choice == TuneChoice(AUTO, "better")), None)


def frontier(points: Sequence[TunePoint], memory: int | None) -> tuple[TunePoint, ...]:
    """The points that no other one beats in step time and memory.

    Where two differ by less than ``NEAR``, the one that was tried first is taken: simple choices come first.

    Args:
      points: tried choices.
      memory: bytes a device has; None for no bound.

    Returns:
      The fastest first.

    Example:
      >>> made = [TunePoint(TuneChoice(name), step_s=s, memory_bytes=m) for name, s, m in
      ...         (("a", 3.0, 10), ("b", 2.0, 20), ("c", 2.5, 30))]
      >>> [point.choice.passes for point in frontier(made, None)], frontier(made, 15)[0].choice.passes
      (['b', 'a'], 'a')
    """
    fitting = [(p.step_s, p.memory_bytes, p) for p in points
               if p.step_s is not None and (memory is None or p.memory_bytes <= memory)]
    out: list[TunePoint] = []
    for step_s, size, _ in sorted(fitting, key=lambda each: each[:2]):
        if not out or size * (1 + NEAR) < out[-1].memory_bytes:
            out.append(next(p for seconds, held, p in fitting
                            if seconds <= step_s * (1 + NEAR) and held <= size * (1 + NEAR)))
    return tuple(dict.fromkeys(out))


def with_buckets(passes: str, size: int) -> str:
    """A pipeline whose all-reduce-fusion makes buckets of a given size.

    Args:
      passes: a named pipeline, or its text.
      size: bytes of a bucket.

    Returns:
      Its text; empty if nothing in it fuses.

    Example:
      >>> with_buckets("comm-shift,all-reduce-fusion", 1 << 20)
      'comm-shift,all-reduce-fusion{bucket-bytes=1MiB}'
      >>> with_buckets("comm-shift", 1 << 20)
      ''
    """
    steps = [] if passes == AUTO else parse_pipeline(PIPELINES.get(passes, passes))
    if not any(isinstance(step, AllReduceFusion) for step in steps):
        return ""
    return format_pipeline([replace(step, bucket_bytes=size) if isinstance(step, AllReduceFusion) else step
                            for step in steps])


# ---- measured choices on disk, so that a search that was stopped goes on where it was


FORMAT = 2
MOST_BYTES = 64 << 20


@dataclass
class TuneCache:
    """The points of one module, target and set of versions.

    Args:
      folder: the folder, created if it is missing; None keeps nothing.
      parts: all that points depend on: the module's text, the target, versions, the user's flags.

    Raises:
      OutputError: the folder cannot be written.
      InputError: this class did not write the file in it.
    """

    folder: Path | None
    parts: tuple[str, ...]
    points: dict[TuneChoice, TunePoint] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            known = self.path.exists()
        except OSError as error:
            raise OutputError(f"cannot be a cache ({os.strerror(error.errno or 0)})", location=str(self.folder),
                              hint="pass a writable folder with --cache, or use --no-cache") from None
        if not known:
            return
        try:
            content = read_json(read_regular(self.path, MOST_BYTES, what="cache of hlorewrite tune"))
            if content["format"] == FORMAT:
                made = [TunePoint.from_json(each) for each in content["points"]]
                self.points.update({point.choice: point for point in made})
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            raise InputError("is not a cache of hlorewrite tune", location=str(self.path),
                             hint="delete it, or use --no-cache") from None

    @property
    def path(self) -> Path:
        """The file."""
        digest = hashlib.sha256("\0".join((str(FORMAT), *self.parts)).encode()).hexdigest()
        return (self.folder or Path()) / f"{digest[:32]}.json"

    def add(self, point: TunePoint) -> TunePoint:
        """Keeps a point, and returns it."""
        self.points[point.choice] = point
        if self.folder is not None:
            content = {"format": FORMAT, "points": [each.as_json() for each in self.points.values()]}
            write_file(self.path, json.dumps(content, indent=1).encode() + b"\n")
        return point
