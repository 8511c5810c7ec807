"""Measures choices of ``hlorewrite tune``: rewrites the step, compiles it for the target, simulates its schedule."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from typing import Any

from jaxlib import version as jaxlib_version

from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.against_xla.flag_sets import FLAG_SETS
from hlorewrite.jaxbridge.against_xla.measured import Measured, compiled, scheduled, timed
from hlorewrite.jaxbridge.decorator.rewrite import StepSettings, as_passes, rewrite_step
from hlorewrite.jaxbridge.xla import protection
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.partition import hides_collectives
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.jaxbridge.xla.without_code import DeviceSet
from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.tune.choice import DEFAULT_FLAGS, Flag, TuneChoice, TunePoint
from hlorewrite.version import VERSION


@dataclass
class TuneMeasurer:
    """Compiles choices for one module and target.

    Args:
      module: the step; it is not changed.
      target: described GPUs, such as ``h200:4x8``.

    Raises:
      UsageError: the target is not a description of GPUs, or has other devices than the step.
    """

    module: Module
    target: str
    _place: DeviceSet = field(init=False)
    _results: dict[TuneChoice, tuple[Module, dict[str, Any], str]] = field(default_factory=dict, init=False)
    """By choice without its XLA flags: the module to compile, flags it needs, and its digest."""
    _made: dict[tuple[str, tuple[tuple[str, Flag], ...]], Measured] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        target = parse_target(self.target)
        if target.platform != "described":
            raise UsageError(f"--target {self.target} has no cost model", hint="name GPUs such as h200:1x8")
        self._place = place_of(target, self.module)

    @property
    def partitioned(self) -> bool:
        """Whether XLA's partitioner has to run before the passes."""
        return hides_collectives(self.module)

    @property
    def parts(self) -> tuple[str, ...]:
        """All that figures depend on."""
        return (self.module.text(debug_info=False), self.target, VERSION, jaxlib_version.__version__,
                os.environ.get("XLA_FLAGS", ""))

    @property
    def flag_sets(self) -> list[tuple[str, tuple[tuple[str, Flag], ...]]]:
        """Published XLA flags that the user has not set."""
        return [(each.name, tuple((name, value) for name, value in each.flags.items() if name not in self._place.flags))
                for each in FLAG_SETS]

    def measure(self, choice: TuneChoice) -> TunePoint:
        """Compiles a choice up to the generation of code; what fails is a point that says why."""
        try:
            module, flags, digest = self._rewritten(choice)
            key = digest, (*choice.flags, *flags.items())
            if key not in self._made:
                made = scheduled(module, self._place, dict(key[1]))[0]
                self._made[key] = timed(made, self._place.topology)
        except HlorewriteError as error:
            return TunePoint(choice, failed=error.what)
        return _point(choice, self._made[key], digest)

    def finished(self, point: TunePoint) -> TunePoint:
        """The same, compiled to the end, with the time that takes."""
        module, flags, _ = self._rewritten(point.choice)
        made = compiled(module, self._place, {**dict(point.choice.flags), **flags})
        return replace(point, compile_s=round(made.seconds, 3))

    def _rewritten(self, choice: TuneChoice) -> tuple[Module, dict[str, Any], str]:
        """The module to compile, flags that a rewritten one needs, and its digest; made once for all XLA flags."""
        passes = replace(choice, flag_set=DEFAULT_FLAGS, flags=())
        if passes not in self._results:
            module, flags = self._run(passes)
            digest = hashlib.sha256(module.text(debug_info=False).encode()).hexdigest()[:16]
            self._results[passes] = module, flags, digest
        return self._results[passes]

    def _run(self, choice: TuneChoice) -> tuple[Module, dict[str, Any]]:
        if not choice.passes:
            return self.module, {}
        settings = StepSettings(as_passes(PIPELINES.get(choice.pipeline, choice.pipeline)), topology=self.target,
                                keep=choice.keep, memory_budget=choice.budget)
        made, _ = rewrite_step(self.module.clone(), settings, self._place)
        if made.bytecode is None:
            return self.module, {}
        return made.module, dict(protection.options(jaxlib_version.__version_info__, self._place.platform))


def _point(choice: TuneChoice, made: Measured, digest: str) -> TunePoint:
    return TunePoint(choice, made.step_s, made.exposed_s, made.bytes, made.memory, digest, failed=made.untimed)
